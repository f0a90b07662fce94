/** Tools of MCP servers, and their approval. */
import { type Page, seesAll } from '../../shell/page.ts'

export const mcpPage: Page = {
  path: '/mcp',
  title: 'MCP servers',
  nav: { group: 'Gateway', icon: 'tool' },
  isFor: seesAll,
  load: () => import('./mcp-page.tsx').then(({ McpPage }) => ({ Page: McpPage })),
}
