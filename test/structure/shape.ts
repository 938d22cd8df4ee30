/** Facts about one source that the limits are checked against: its functions, interfaces, exports, timers and paths. */

import { isNode, lineNumbers, type Node, syntaxOf, walk } from "./syntax.ts";

export interface Shape {
	readonly functions: readonly { name: string; lines: number }[];
	readonly interfaces: readonly { name: string; methods: number }[];
	/** Names of types that this file defines and exports. */
	readonly types: readonly string[];
	/** Names that this file exports from others. */
	readonly reExports: number;
	readonly starExports: number;
	/** Timers, back-off formulas and sleeps written by hand. */
	readonly waits: number;
	/** Paths into the tests. */
	readonly testPaths: number;
}

const FUNCTIONS = new Set(["FunctionDeclaration", "FunctionExpression", "ArrowFunctionExpression"]);
const TYPES = new Set(["TSInterfaceDeclaration", "TSTypeAliasDeclaration", "ClassDeclaration"]);

const nameOf = (node: unknown): string | undefined => {
	if (!isNode(node)) return undefined;
	if (node.type === "PrivateIdentifier") return `#${String(node.name)}`;
	if (node.type === "Identifier") return node.name as string;
	return node.type === "Literal" ? String(node.value) : undefined;
};

/** Functions get the name of what holds them: a variable, a property, a method. */
function functionsIn(program: Node, lineOf: (offset: number) => number): Shape["functions"] {
	const named = new Map<unknown, string>();
	const found: { name: string; lines: number }[] = [];
	walk(program, (node) => {
		const holder = nameOf(node.id) ?? nameOf(node.key) ?? named.get(node);
		for (const value of [node.init, node.value]) if (holder !== undefined && isNode(value)) named.set(value, holder);
		if (FUNCTIONS.has(node.type)) {
			found.push({ name: holder ?? "(anonymous)", lines: lineOf(node.end) - lineOf(node.start) + 1 });
		}
		return undefined;
	});
	return found;
}

const isMethod = (member: Node): boolean => {
	if (member.type === "TSMethodSignature") return true;
	const annotation = (member.typeAnnotation as Node | undefined)?.typeAnnotation;
	return member.type === "TSPropertySignature" && isNode(annotation) && annotation.type === "TSFunctionType";
};

/** `2 ** n` grows with each attempt; `2 ** 16` is a size. */
const isBackOff = (node: Node): boolean =>
	node.type === "BinaryExpression" &&
	node.operator === "**" &&
	(node.left as Node).type === "Literal" &&
	(node.left as Node).value === 2 &&
	(node.right as Node).type !== "Literal";

/** The global timer, not the idle time-out of a socket, which has the same name. */
const isTimer = (node: Node): boolean => node.type === "CallExpression" && nameOf(node.callee) === "setTimeout";

/** `new Promise((resolve) => clock.after(ms, resolve))`. */
function isSleep(node: Node): boolean {
	if (node.type !== "NewExpression" || nameOf(node.callee) !== "Promise") return false;
	const body = (node.arguments as Node[])[0]?.body;
	const calls = isNode(body) && body.type === "BlockStatement" ? (body.body as Node[]) : [body];
	return calls.some((statement) => {
		const call = isNode(statement) && statement.type === "ExpressionStatement" ? statement.expression : statement;
		return isNode(call) && call.type === "CallExpression" && nameOf((call.callee as Node).property) === "after";
	});
}

const TEST_PATH = /(?:^|\/)test\/\w/;
const textOf = (node: Node): unknown =>
	node.type === "TemplateElement" ? (node.value as { raw: string }).raw : node.value;

export function shapeOf(file: string, source: string): Shape {
	const { program } = syntaxOf(file, source);
	const interfaces: { name: string; methods: number }[] = [];
	const types: string[] = [];
	let [reExports, starExports, waits, testPaths] = [0, 0, 0, 0];
	for (const statement of program.body as Node[]) {
		if (statement.type === "ExportAllDeclaration") starExports++;
		if (statement.type !== "ExportNamedDeclaration") continue;
		if (statement.source) reExports += (statement.specifiers as Node[]).length;
		const name = isNode(statement.declaration) ? nameOf(statement.declaration.id) : undefined;
		if (name !== undefined && TYPES.has((statement.declaration as Node).type)) types.push(name);
	}
	walk(program, (node) => {
		if (node.type === "TSInterfaceDeclaration") {
			const members = (node.body as Node).body as Node[];
			interfaces.push({ name: nameOf(node.id) ?? "", methods: members.filter(isMethod).length });
		}
		if (isBackOff(node) || isTimer(node) || isSleep(node)) waits++;
		if (node.type === "Literal" || node.type === "TemplateElement") {
			const text = textOf(node);
			if (typeof text === "string" && TEST_PATH.test(text)) testPaths++;
		}
		return undefined;
	});
	const functions = functionsIn(program, lineNumbers(source));
	return { functions, interfaces, types, reExports, starExports, waits, testPaths };
}
