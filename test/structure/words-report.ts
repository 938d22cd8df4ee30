/** `node test/structure/words-report.ts [--counts] [prefix]`: lists the words to replace, with advice, below a path. */

import { ROOT } from "./files.ts";
import { describeFinding, wordCounts, wordsBelow } from "./words.ts";

const counts = process.argv.includes("--counts");
const prefix = process.argv.slice(2).find((argument) => !argument.startsWith("--")) ?? "";
const findings = wordsBelow(ROOT, prefix.replace(/^\.\//, ""));
if (counts) console.log(JSON.stringify(wordCounts(findings), undefined, "\t"));
else for (const finding of findings) console.log(describeFinding(finding));
console.error(`${findings.length} findings${prefix === "" ? "" : ` below ${prefix}`}`);
