/** Every service that the protos have, read from the generated code itself: what is not routed is found, too. */

import { globSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { DescMethod, DescService } from "@bufbuild/protobuf";

const gen = fileURLToPath(new URL("../../../packages/client/src/gen/", import.meta.url));

const isService = (value: unknown): value is DescService =>
	typeof value === "object" && value !== null && "kind" in value && value.kind === "service";

const modules: object[] = await Promise.all(
	globSync("**/*_pb.ts", { cwd: gen }).map((file) => import(`${gen}${file}`) as Promise<object>),
);

export const services: readonly DescService[] = modules
	.flatMap((module) => Object.values(module) as unknown[])
	.filter(isService);

export const procedureOf = ({ parent, name }: DescMethod): string => `${parent.typeName}/${name}`;

export const methods: readonly DescMethod[] = services.flatMap((service) => service.methods);
