/** Connectors of a daemon: what `default` is, which addresses the operator vouches for, and where the secret key comes from. */

import type { Clock } from "@nexus-stream/protocol/clock";
import type { Engine } from "@nexus-stream/protocol/engine";
import type { Bus } from "../../bus/bus.ts";
import { chooseEngine, engineNamed, loadEngine } from "../../engine/engine.ts";
import type { Transfers } from "../../services/artifacts/port.ts";
import type { Audit } from "../../services/audit/port.ts";
import { type ConfiguredAnswerer, createConnectors } from "../../services/connectors/connectors.ts";
import type { ConnectorService } from "../../services/connectors/port.ts";
import { OWNER_APP } from "../../services/kit/principal.ts";
import type { NexusConfig } from "../config/config.ts";
import { dataPaths } from "../data/data-dir.ts";
import { secretKey } from "../data/secrets.ts";
import type { ServiceRows } from "../data/tables.ts";

export interface ConnectorParts {
	bus: Pick<Bus, "write">;
	rows: Pick<ServiceRows, "connectors">;
	engine: Engine;
	config: NexusConfig;
	clock: Clock;
	audit: Audit;
	/** Tracks the daemon's own downloads. */
	transfers: Pick<Transfers, "tracked">;
}

type Environment = Readonly<Record<string, string | undefined>>;

export function openConnectors(parts: ConnectorParts, env: Environment = process.env): ConnectorService {
	const { bus, rows, engine, config, clock, audit, transfers } = parts;
	return createConnectors({
		bus,
		rows,
		clock,
		audit,
		secret: secretKey(dataPaths(config.data), env),
		configured: configuredOf(engine, config, env),
		// The engine that answers when nothing is configured.
		offline: () => loadEngine(chooseEngine(undefined, {}, {}), { base: config.base }),
		rules: { ...config.connectors, section: "connectors." },
		inlineApps: config.connectors?.inlineApps,
		fetched: (fetch) => transfers.tracked(fetch, OWNER_APP),
	});
}

/** The engine's model, asked by itself; the engine where it has none. */
export function configuredOf(engine: Engine, config: NexusConfig, env: Environment): ConfiguredAnswerer {
	const { entry, section } = engineNamed(engine.name, config) ?? {};
	if (entry?.model === undefined || engine.scripted) return { engine };
	try {
		const model = entry.model(section, env);
		return model ? { model } : { engine };
	} catch {
		// Each of its agents has its own model, or a program has made it: it runs, so it can be asked.
		return { engine };
	}
}
