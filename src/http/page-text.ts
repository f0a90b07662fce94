/** The HTML of the gateway's own pages. They send no request to another server. */
import { escapeHtml } from '../kit/markdown.ts'

const CURL = (origin: string) => `curl ${origin}/v1/chat/completions \\
  -H "Authorization: Bearer $GATEHOUSE_TOKEN" \\
  -H "Content-Type: application/json" \\
  -d '{
    "model": "sandbox/general",
    "messages": [{"role": "user", "content": "What is Gatehouse?"}]
  }'`

/** Colours and text of every page, in a light and a dark scheme. */
export const BASE_STYLE = `
  :root { color-scheme: light dark; --ink: #1c2430; --paper: #fbfaf7; --soft: #5c6675; --line: #dcd8cf; --accent: #0b6e69; --code: #f1eee7 }
  @media (prefers-color-scheme: dark) {
    :root { --ink: #e8e6e1; --paper: #14181d; --soft: #9aa5b1; --line: #2b323a; --accent: #5cc8bf; --code: #1c2229 }
  }
  * { box-sizing: border-box }
  body { margin: 0; background: var(--paper); color: var(--ink); font: 17px/1.6 ui-sans-serif, system-ui, sans-serif }
  pre { background: var(--code); border: 1px solid var(--line); border-radius: .5rem; padding: 1rem; overflow-x: auto; font: 14px/1.55 ui-monospace, monospace }
  code { font-family: ui-monospace, monospace; font-size: .92em }
  pre code { font-size: 1em }
  table { border-collapse: collapse; width: 100%; font-size: .97rem }
  td { border-top: 1px solid var(--line); padding: .5rem .75rem .5rem 0; vertical-align: top }
  footer { margin-top: 3rem; color: var(--soft); font-size: .9rem }
`

const STYLE = `${BASE_STYLE}
  main { max-width: 46rem; margin: 0 auto; padding: 12vh 1.5rem 4rem }
  h1 { font-size: 2.6rem; line-height: 1.1; letter-spacing: -.02em; margin: 0 0 .4rem }
  .lead { font-size: 1.2rem; color: var(--soft); margin: 0 0 2rem }
  nav { display: flex; flex-wrap: wrap; gap: .75rem; margin: 0 0 2.5rem }
  nav a { border: 1px solid var(--line); border-radius: .5rem; padding: .45rem .9rem; text-decoration: none; color: var(--ink) }
  nav a:first-child { background: var(--accent); border-color: var(--accent); color: var(--paper) }
  nav a:hover, nav a:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px }
  h2 { font-size: 1.1rem; margin: 2rem 0 .5rem }
`

/** The icon as a data URI, since browsers otherwise request /favicon.ico. */
export const ICON =
  '<link rel="icon" href="data:image/svg+xml,' +
  '%3Csvg xmlns=%27http://www.w3.org/2000/svg%27 viewBox=%270 0 16 16%27%3E' +
  '%3Cpath fill=%27%230b6e69%27 d=%27M2 15V7a6 6 0 0 1 12 0v8h-3V8a3 3 0 0 0-6 0v7z%27/%3E%3C/svg%3E">'

/** `nonce` allows the scripts of the page, and no others. */
type PageParts = { version: string; nonce: string }

export type Endpoint = { method: string; path: string; summary: string }

const rowOf = ({ method, path, summary }: Endpoint) =>
  `<tr><td><code>${escapeHtml(`${method} ${path}`)}</code></td><td>${escapeHtml(summary)}</td></tr>`

export function homePage({ version, nonce, endpoints }: PageParts & { endpoints: Endpoint[] }): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Gatehouse</title>
${ICON}
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>Gatehouse</h1>
<p class="lead">A gateway to hosted generative models: one address, one kind of token, any OpenAI client.</p>
<nav><a href="/manual">Manual</a><a href="/docs">API reference</a><a href="/openapi.json">OpenAPI document</a><a href="/healthz">Health</a></nav>
<h2>A first call</h2>
<pre id="curl">${escapeHtml(CURL('http://127.0.0.1:8787'))}</pre>
<p>The token was shown when the gateway first started; <code>gatehouse token create</code> makes another.</p>
<h2>Endpoints</h2>
<table>
${endpoints.map(rowOf).join('\n')}
</table>
<footer>Version ${escapeHtml(version)}</footer>
</main>
<script nonce="${nonce}">
  const example = document.getElementById('curl')
  example.textContent = example.textContent.replace('http://127.0.0.1:8787', location.origin)
</script>
</body>
</html>
`
}

/** Scalar's reference of our OpenAPI document, whose introduction links to the manual. */
export function referencePage({ version, nonce }: PageParts): string {
  const settings = {
    url: '/openapi.json',
    withDefaultFonts: false,
    telemetry: false,
    documentDownloadType: 'json',
    modelsSectionLabel: 'Schemas',
    orderSchemaPropertiesBy: 'preserve',
    hideClientButton: true,
    showDeveloperTools: 'never',
    agent: { disabled: true },
    mcp: { disabled: true },
    metaData: { title: `Gatehouse ${version}` },
  }
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Gatehouse ${escapeHtml(version)}: API reference</title>
${ICON}
</head>
<body>
<div id="reference"></div>
<noscript>This page needs JavaScript; the document itself is at <a href="/openapi.json">/openapi.json</a>, and the manual at <a href="/manual">/manual</a>.</noscript>
<script src="/docs/scalar.js"></script>
<script nonce="${nonce}">Scalar.createApiReference('#reference', ${JSON.stringify(settings)})</script>
</body>
</html>
`
}
