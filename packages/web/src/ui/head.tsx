/** The top of a page: the way to the list on a narrow screen, the title, and what belongs beside it. */

import type { ComponentChildren } from "preact";
import type { WebApp } from "../app/app.ts";
import { Icon } from "./icon.tsx";

export const Head = ({ app, title, children }: { app: WebApp; title: string; children?: ComponentChildren }) => (
	<header class="head">
		<DrawerButton app={app} />
		<h1 dir="auto">{title}</h1>
		{children}
	</header>
);

export const DrawerButton = ({ app }: { app: WebApp }) => (
	<button type="button" class="round open-drawer" onClick={() => app.setDrawer(true)} aria-label="Show the menu">
		<Icon name="menu" />
	</button>
);
