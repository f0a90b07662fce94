/** Which page of the manual belongs to a page of the console, by the start of its path. */
export const MANUAL_PAGES: Readonly<Record<string, string>> = {
  '/': 'console',
  '/alerts': 'alerts',
  '/audit': 'administrators',
  '/batches': 'batches',
  '/budgets': 'budgets',
  '/cache': 'cache-responses',
  '/config': 'configuration',
  '/files': 'files',
  '/guards': 'guards',
  '/mcp': 'mcp',
  '/models': 'models',
  '/playground': 'console-developer',
  '/projects': 'projects',
  '/providers': 'providers',
  '/requests': 'search-requests',
  '/routing': 'route-requests',
  '/sessions': 'search-requests',
  '/settings': 'administrators',
  '/tasks': 'operations',
  '/tokens': 'tokens',
  '/usage': 'chargeback',
  '/webhooks': 'webhooks',
}

export const manualPageOf = (path: string): string => MANUAL_PAGES[`/${path.split('/')[1] ?? ''}`] ?? 'console'
