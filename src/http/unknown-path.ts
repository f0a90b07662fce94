/** Describes a path that is not served: what it belongs to in other services, or the path that was probably meant. */
import { nearest } from '../kit/nearest.ts'
import type { Route } from './context.ts'
import { isLiteral } from './route-order.ts'

/** APIs that clients know from other services: the first segments after the version. */
const NOT_SERVED: Record<string, string> = {
  assistants: 'assistants',
  cachedContents: 'cached contents',
  chatkit: 'chat sessions',
  containers: 'containers',
  evals: 'evaluations',
  fileSearchStores: 'file search stores',
  fine_tuning: 'fine-tuning',
  interactions: 'interactions',
  ocr: 'text recognition',
  skills: 'skills',
  threads: 'threads',
  tunedModels: 'tuned models',
  uploads: 'uploads',
  vector_stores: 'vector stores',
}

/** `v1`, `v1beta`, `v1beta1` */
const VERSION = /^v\d+(?:(?:alpha|beta)\d*)?$/

/** Clients put the prefix of another service before a path, rarely of more than these segments. */
const MAX_PREFIX = 5
/** A longer path is not a misspelt one. */
const MAX_LENGTH = 200

/** Creates the function that describes an unknown path; undefined: there is nothing to say. Admin paths are not named. */
export function createPathHints(routes: Route[]): (path: string) => string | undefined {
  const named = routes.filter(({ admin, only_at_metrics, path }) => !admin && !only_at_metrics && path !== '/')
  const literal = new Set(named.filter(isLiteral).map(({ path }) => path))
  const patterns = named.filter((route) => !isLiteral(route)).map(({ path }) => patternOf(path))
  const listed = [...new Set(named.filter((route) => isLiteral(route) && !route.hidden).map(({ path }) => path))]
  const isServed = (path: string) => literal.has(path) || patterns.some((pattern) => pattern.test(path))

  return (path) => {
    if (path.length > MAX_LENGTH) return undefined
    const segments = path.split('/').filter((segment) => segment !== '')
    const rests = segments.slice(0, MAX_PREFIX + 1).map((_, start) => `/${segments.slice(start).join('/')}`)
    // As it stands, before what only a version would make a path.
    const right = [...rests, ...rests.map((rest) => `/v1${rest}`)].find((one) => one !== path && isServed(one))
    if (right !== undefined) return `the path here is ${right}`
    const api = notServed(segments)
    if (api !== undefined) return `Gatehouse does not serve ${api} yet`
    const similar = nearest(path, listed, 2)
    return similar === undefined ? undefined : `did you mean ${similar}?`
  }
}

function notServed(segments: string[]): string | undefined {
  const [first = '', second = ''] = segments.slice(segments.findIndex((segment) => VERSION.test(segment)) + 1)
  return [`${first}/${second}`, first].flatMap((name) => (Object.hasOwn(NOT_SERVED, name) ? NOT_SERVED[name] : []))[0]
}

/** `/v1/models/:model{.+}` and `/v1beta/:model{.+:generateContent}`; a parameter without a pattern is one segment. */
function patternOf(path: string): RegExp {
  const source = path.replaceAll(/:\w+(?:\{([^}]*)\})?|[^:\w/-]/g, (part, pattern?: string) =>
    part.startsWith(':') ? (pattern ?? '[^/]+') : `\\${part}`,
  )
  return new RegExp(`^${source}$`)
}
