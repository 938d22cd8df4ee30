/** The nodes of a workflow as a graph: from top to bottom, each under what it depends on. */

import { WorkflowState as State, type WorkflowNodeStatus } from "@nexus-stream/client/gen/nexus/runtime/v1/workflow_pb";
import { useMemo } from "preact/hooks";
import { nameOf } from "../app/runtime.ts";
import { Scrollable } from "../ui/scrollable.tsx";
import { type WorkflowLayout as GraphView, graphOf, nodeKindWords, type PlacedNode } from "./workflow.ts";
import { stateWords } from "./workflows.ts";

/** In rem, so that it grows with the text. */
const NODE = { width: 9.25, height: 2.75 };
const GAP = { x: 0.75, y: 1.5 };
/** Room for what is drawn around a node. */
const MARGIN = 0.25;

const leftOf = ({ x }: PlacedNode): number => MARGIN + x * (NODE.width + GAP.x);
const topOf = ({ y }: PlacedNode): number => MARGIN + y * (NODE.height + GAP.y);

interface GraphProps {
	nodes: readonly WorkflowNodeStatus[];
	onPick(nodeId: string): void;
}

export function WorkflowGraph({ nodes, onPick }: GraphProps) {
	const graph = useMemo(() => graphOf(nodes), [nodes]);
	const width = 2 * MARGIN + graph.columns * (NODE.width + GAP.x) - GAP.x;
	const height = 2 * MARGIN + graph.rows * (NODE.height + GAP.y) - GAP.y;
	return (
		<Scrollable as="div" class="box graph-frame" label="Graph of the nodes">
			<div class="graph" style={{ width: `${width}rem`, height: `${height}rem` }}>
				<Edges graph={graph} width={width} height={height} />
				{graph.nodes.map((placed) => (
					<GraphNode key={placed.node.nodeId} placed={placed} onPick={onPick} />
				))}
			</div>
		</Scrollable>
	);
}

const Edges = ({ graph, width, height }: { graph: GraphView; width: number; height: number }) => (
	<svg class="edges" viewBox={`0 0 ${width} ${height}`} aria-hidden="true" focusable="false">
		{graph.edges.map(({ from, to }) => (
			<path
				key={`${from.node.nodeId} ${to.node.nodeId}`}
				d={curve(from, to)}
				data-state={nameOf(State, to.node.state === State.SKIPPED ? State.SKIPPED : from.node.state)}
			/>
		))}
	</svg>
);

function curve(from: PlacedNode, to: PlacedNode): string {
	const [x1, y1] = [leftOf(from) + NODE.width / 2, topOf(from) + NODE.height];
	const [x2, y2] = [leftOf(to) + NODE.width / 2, topOf(to)];
	return `M${x1} ${y1}C${x1} ${y1 + GAP.y} ${x2} ${y2 - GAP.y} ${x2} ${y2}`;
}

function GraphNode({ placed, onPick }: { placed: PlacedNode; onPick(nodeId: string): void }) {
	const { node } = placed;
	const { tone, text } = stateWords(node);
	const style = {
		left: `${leftOf(placed)}rem`,
		top: `${topOf(placed)}rem`,
		width: `${NODE.width}rem`,
		height: `${NODE.height}rem`,
	};
	return (
		<button
			type="button"
			class="graph-node"
			data-node={node.nodeId}
			data-state={nameOf(State, node.state)}
			data-tone={tone}
			style={style}
			title={`${node.nodeId} (${nodeKindWords(node.kind)}): ${text}`}
			onClick={() => onPick(node.nodeId)}
		>
			<i aria-hidden="true" />
			<span class="cut graph-name">{node.nodeId}</span>
			<small>{text}</small>
		</button>
	);
}
