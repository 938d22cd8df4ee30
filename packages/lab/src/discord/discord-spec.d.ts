/** The official schemas come without types. */
declare module "discord-api-spec/zod" {
	interface Schema {
		safeParse(value: unknown): { success: true } | { success: false; error: Error };
	}
	export const MessageCreateRequestSchema: Schema;
	export const MessageEditRequestPartialSchema: Schema;
}
