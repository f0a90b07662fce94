/** Tools of MCP servers, and their approval. */
import { hasRight, type Page, seesAll } from '../../shell/page.ts'

export const mcpPage: Page = {
  path: '/mcp',
  title: 'MCP servers',
  nav: { group: 'Gateway', icon: 'tool' },
  isFor: (me) => seesAll(me) || hasRight(me, 'call'),
  load: () => import('./mcp-page.tsx').then(({ McpPage }) => ({ Page: McpPage })),
}
