/** A plugin of `buf generate`: the comments of the runtime contract by full name, which the OpenAPI document shows. */

import { buffer } from "node:stream/consumers";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
	CodeGeneratorRequestSchema,
	CodeGeneratorResponseSchema,
	type DescriptorProto,
	type FileDescriptorProto,
} from "@bufbuild/protobuf/wkt";

/** Field numbers of descriptors, by which a comment names its place. */
const [MESSAGE, ENUM, SERVICE, MEMBER, NESTED] = [4, 5, 6, 2, 3];

type Entry = [name: string, comment: string];

function commentsOf({ package: parent, messageType, enumType, service, sourceCodeInfo }: FileDescriptorProto): Entry[] {
	const byPath = new Map(
		(sourceCodeInfo?.location ?? []).map(({ path, leadingComments }) => [path.join("."), leadingComments]),
	);
	const found: Entry[] = [];
	const add = (name: string, path: string) => {
		const text = byPath
			.get(path)
			?.trim()
			.replace(/\s*\n\s*/g, " ");
		if (text) found.push([name, text]);
	};
	const addMessage = ({ name, field, nestedType }: DescriptorProto, scope: string, path: string) => {
		add(`${scope}.${name}`, path);
		for (const [n, { name: own }] of field.entries()) add(`${scope}.${name}.${own}`, `${path}.${MEMBER}.${n}`);
		for (const [n, inner] of nestedType.entries()) addMessage(inner, `${scope}.${name}`, `${path}.${NESTED}.${n}`);
	};
	for (const [n, message] of messageType.entries()) addMessage(message, parent, `${MESSAGE}.${n}`);
	for (const [n, { name }] of enumType.entries()) add(`${parent}.${name}`, `${ENUM}.${n}`);
	for (const [n, { name, method }] of service.entries())
		for (const [m, { name: own }] of method.entries())
			add(`${parent}.${name}.${own}`, `${SERVICE}.${n}.${MEMBER}.${m}`);
	return found;
}

const request = fromBinary(CodeGeneratorRequestSchema, await buffer(process.stdin));
const comments = Object.fromEntries(
	request.protoFile.filter((file) => file.package === "nexus.runtime.v1").flatMap(commentsOf),
);
const content = `// @generated from the comments in proto/nexus/runtime/v1
export const COMMENTS: Readonly<Record<string, string>> = ${JSON.stringify(comments, undefined, 2)};
`;
// FEATURE_PROTO3_OPTIONAL.
const supportedFeatures = 1n;
const response = create(CodeGeneratorResponseSchema, {
	supportedFeatures,
	file: [{ name: "nexus/runtime/v1/comments.ts", content }],
});
process.stdout.write(toBinary(CodeGeneratorResponseSchema, response));
