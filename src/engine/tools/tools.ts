/** Tools that engines offer to models: what one is, the registry of them, and how people read of a call. The door of this folder. */

export type { ApprovalPolicy } from "../port.ts";
export { describeCall } from "./describe.ts";
export { digestOf, isToolAllowed, needsApproval, policyOf } from "./policy.ts";
export type {
	CustomState,
	Describe,
	JsonSchema,
	Question,
	Tool,
	ToolContext,
	ToolResult,
	ToolSource,
} from "./port.ts";
export {
	asModelTool,
	type Prepared,
	prepareCall,
	type ToolRegistry,
	textResult,
	toolRegistry,
	type ValidateArguments,
} from "./registry.ts";
