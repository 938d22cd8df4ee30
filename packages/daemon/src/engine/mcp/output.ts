/** Checks what a tool answered by the schema that its server gave, as far as that takes bounded time: both are the server's. */

import type { JsonSchemaType, JsonSchemaValidator, jsonSchemaValidator } from "@modelcontextprotocol/client";
import { Ajv, AjvJsonSchemaValidator } from "@modelcontextprotocol/client/validators/ajv";
import type { JsonSchema } from "../tools/tools.ts";
import type { McpLimits } from "./port.ts";
import { checkable } from "./schema.ts";

/** Schemas and alternatives, times characters of the answer. Beyond, the answer is taken as it is. */
const WORK_MAX = 50_000_000;

/** A schema is compiled when it is needed first: the library asks for those of all tools at once. */
export function outputValidator({ schemaBytesMax }: Pick<McpLimits, "schemaBytesMax">): jsonSchemaValidator {
	const library = new AjvJsonSchemaValidator(new Ajv({ strict: false, validateSchema: false, validateFormats: false }));
	const compiled = <T>(given: JsonSchemaType) => {
		if (Buffer.byteLength(JSON.stringify(given)) > schemaBytesMax) throw new Error("its output schema is too large");
		const { schema, steps } = checkable(given as JsonSchema);
		const { $schema: _, ...rest } = schema;
		return { check: library.getValidator<T>(rest as JsonSchemaType), steps };
	};
	return {
		getValidator<T>(given: JsonSchemaType): JsonSchemaValidator<T> {
			const validator = once(() => compiled<T>(given));
			return (answer) => {
				const { check, steps } = validator();
				const isChecked = steps * JSON.stringify(answer).length <= WORK_MAX;
				return isChecked ? check(answer) : { valid: true, data: answer as T, errorMessage: undefined };
			};
		},
	};
}

function once<T>(make: () => T): () => T {
	let made: { value: T } | undefined;
	return () => {
		made ??= { value: make() };
		return made.value;
	};
}
