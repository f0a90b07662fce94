/** Which addresses have a page: a link to one that has none would lead nowhere. */
let patterns: RegExp[] = []

/** `paths`: in the syntax of the router. Called once, at the start. */
export function setKnownPaths(paths: readonly string[]): void {
  patterns = paths.map((path) => {
    const parts = path.split('/').map((part) => {
      if (part === '$') return '.+'
      return part.startsWith('$') ? '[^/]+' : part.replaceAll(/[.*+?^{}()|[\]\\]/g, '\\$&')
    })
    return new RegExp(`^${parts.join('/')}$`)
  })
}

export const isKnownPath = (path: string): boolean =>
  !path.startsWith('/') || patterns.some((pattern) => pattern.test(path))
