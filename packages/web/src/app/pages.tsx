/** The way from page to page. */

import { Icon, type IconName } from "../ui/icon.tsx";
import { formatRoute, type PageRoute } from "./route.ts";

interface PageLink {
	name: string;
	icon: IconName;
	route: PageRoute;
	/** Routes that belong to it. */
	of: readonly PageRoute["name"][];
}

const PAGES: readonly PageLink[] = [
	{ name: "Chat", icon: "chat", route: { name: "home" }, of: ["home", "chat", "run"] },
	{ name: "Lab", icon: "flask", route: { name: "lab" }, of: ["lab"] },
	{ name: "Adapters", icon: "plug", route: { name: "adapters" }, of: ["adapters"] },
	{ name: "Workflows", icon: "graph", route: { name: "workflows" }, of: ["workflows", "workflow"] },
	{ name: "Memory", icon: "thought", route: { name: "memory" }, of: ["memory"] },
];

export const Pages = ({ route }: { route: PageRoute }) => (
	<nav class="pages" aria-label="Pages">
		{PAGES.map(({ name, icon, route: to, of }) => (
			<a key={name} href={formatRoute(to)} aria-current={of.includes(route.name) ? "page" : undefined}>
				<Icon name={icon} /> {name}
			</a>
		))}
	</nav>
);
