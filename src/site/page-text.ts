/** The HTML of the gateway's own pages. They send no request to another server. */
import { escapeHtml } from '../kit/markdown.ts'
import { BASE_STYLE, headOf } from './manual/page-style.ts'

const CURL = (origin: string, model: string) => `curl ${origin}/v1/chat/completions \\
  -H "Authorization: Bearer $GATEHOUSE_TOKEN" \\
  -H "Content-Type: application/json" \\
  -d '{
    "model": "${model}",
    "messages": [{"role": "user", "content": "What is Gatehouse?"}]
  }'`

const STYLE = `${BASE_STYLE}
  main { max-width: 46rem; margin: 0 auto; padding: 12vh 1.5rem 4rem }
  h1 { font-size: 2.6rem; line-height: 1.1; letter-spacing: -.02em; margin: 0 0 .4rem }
  .lead { font-size: 1.2rem; color: var(--soft); margin: 0 0 2rem }
  nav { display: flex; flex-wrap: wrap; gap: .75rem; margin: 0 0 2.5rem }
  nav a { border: 1px solid var(--line); border-radius: .5rem; padding: .45rem .9rem; text-decoration: none; color: var(--ink) }
  nav a:first-child { background: var(--accent); border-color: var(--accent); color: var(--paper) }
  nav a:hover, nav a:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px }
  h2 { font-size: 1.1rem; margin: 2rem 0 .5rem }
  td code { overflow-wrap: anywhere }
  @media (max-width: 40rem) {
    main { padding-top: 2rem }
    tbody, tr, td { display: block }
    td + td { border-top: 0; padding-top: 0; color: var(--soft) }
  }
`

/** `nonce` allows the scripts of the page, and no others. */
type PageParts = { version: string; nonce: string }

export type Endpoint = { method: string; path: string; summary: string }

const rowOf = ({ method, path, summary }: Endpoint) =>
  `<tr><td><code>${escapeHtml(`${method} ${path}`)}</code></td><td>${escapeHtml(summary)}</td></tr>`

/** Whether the model of the example exists. Others are not named: the page needs no token. */
type HomeParts = PageParts & { endpoints: Endpoint[]; has_sandbox: boolean; has_console: boolean }

export function homePage({ version, nonce, endpoints, has_sandbox, has_console }: HomeParts): string {
  const model = has_sandbox ? 'sandbox/general' : 'MODEL'
  const remedy = has_sandbox ? '' : ' Replace <code>MODEL</code> with an id of <code>GET /v1/models</code>.'
  return `${headOf('Gatehouse', STYLE)}
<body>
<main>
<h1>Gatehouse</h1>
<p class="lead">A gateway to hosted generative models: one address, one kind of token, any OpenAI client.</p>
<nav>${has_console ? '<a href="/console">Console</a>' : ''}<a href="/manual">Manual</a><a href="/docs">API reference</a><a href="/openapi.json">OpenAPI document</a><a href="/healthz">Health</a></nav>
<h2>A first call</h2>
<pre id="curl">${escapeHtml(CURL('http://127.0.0.1:8787', model))}</pre>
<p>The token was shown when the gateway first started; <code>gatehouse token create</code> makes another.${remedy}</p>
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
  return `${headOf(`Gatehouse ${version}: API reference`)}
<body>
<div id="reference"></div>
<noscript>This page needs JavaScript; the document itself is at <a href="/openapi.json">/openapi.json</a>, and the manual at <a href="/manual">/manual</a>.</noscript>
<script src="/docs/scalar.js"></script>
<script nonce="${nonce}">Scalar.createApiReference('#reference', ${JSON.stringify(settings)})</script>
</body>
</html>
`
}
