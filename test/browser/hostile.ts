/** Markdown that tries to run code, load something from elsewhere, or break out of its place. */

export const HOSTILE = `# Hostile

<script>window.hacked = 1</script>
<img src=x onerror="window.hacked = 2">
<svg onload="window.hacked = 3"><script>window.hacked = 4</script></svg>
<iframe src="https://foreign.invalid/frame"></iframe>
<style>@import url("https://foreign.invalid/style.css"); body { display: none }</style>
<link rel="stylesheet" href="https://foreign.invalid/link.css">
<form action="https://foreign.invalid/form"><button>go</button></form>
<a href="javascript:window.hacked = 5" onclick="window.hacked = 6">html link</a>

inline <b onmouseover="window.hacked = 7">html</b> and <img src="https://foreign.invalid/inline.png">

[script](javascript:window.hacked=8) [Script](JaVaScRiPt:window.hacked=9) [tab](java\tscript:window.hacked=10)
[entity](&#106;avascript:window.hacked=11) [vb](vbscript:x) [data](data:text/html,<script>window.hacked=12</script>)
[file](file:///etc/passwd) [blob](blob:https://foreign.invalid/x) [relative](/v1/sessions) [fragment](#code=stolen)
[ref] and ![ref] and [good](https://example.com/ok "title")

![remote](https://foreign.invalid/remote.png)
![data html](data:text/html;base64,PHNjcmlwdD53aW5kb3cuaGFja2VkPTEzPC9zY3JpcHQ+)
![svg](data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIG9ubG9hZD0id2luZG93LmhhY2tlZD0xNCI+PC9zdmc+)
![quote](https://foreign.invalid/a.png"onerror="window.hacked=15)

\`\`\`"><script>window.hacked=16</script>
</code></pre><script>window.hacked = 17</script>
\`\`\`

| a | b |
|---|---|
| <img src=x onerror=window.hacked=18> | [x](javascript:window.hacked=19) |

- [x] <input autofocus onfocus="window.hacked = 20">

[ref]: javascript:window.hacked=21
[^1]: <script>window.hacked = 22</script>

<https://foreign.invalid/auto> javascript:window.hacked=23 www.foreign.invalid

The hostile text ends here.
`;
