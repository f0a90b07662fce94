/** The query and the path of a request whose `url` may be no URL: without a valid `host` header it is only a path. */

export function queryOf({ url }: Pick<Request, 'url'>): URLSearchParams {
  const start = url.indexOf('?')
  return new URLSearchParams(start === -1 ? '' : url.slice(start).split('#', 1)[0])
}

/**
 * The path as it came, still percent-encoded, without the query and a trailing slash. Without a usable `host` header
 * (HTTP/1.0) there is nothing before it.
 */
export function pathOf({ url }: Pick<Request, 'url'>): string {
  const start = url.charCodeAt(0) === 47 ? 0 : url.indexOf('/', url.indexOf('//') + 2)
  if (start === -1) return '/' // of CONNECT, which names no path
  let end = url.indexOf('?', start)
  if (end === -1) end = url.length
  while (end > start + 1 && url.charCodeAt(end - 1) === 47) end--
  return url.slice(start, end)
}

/** Whether a path is of the admin API or of the console, which are served at one listener. */
export const isAdminPath = (path: string): boolean => /^\/(admin|console)(\/|$)/.test(path)
