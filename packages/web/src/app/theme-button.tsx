/** Light, dark, or as the system says. */

import { Icon } from "../ui/icon.tsx";
import type { Theme } from "./store.ts";

const NEXT = { auto: "light", light: "dark", dark: "auto" } as const satisfies Record<Theme, Theme>;
const ICON = { auto: "auto", light: "sun", dark: "moon" } as const;
const NAME = { auto: "System colours", light: "Light", dark: "Dark" } as const;

export const ThemeButton = ({ theme, onChange }: { theme: Theme; onChange(theme: Theme): void }) => (
	<button type="button" class="quiet theme" onClick={() => onChange(NEXT[theme])} title="Change the colours">
		<Icon name={ICON[theme]} /> {NAME[theme]}
	</button>
);
