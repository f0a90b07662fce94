/** Paths that end in a method, as in the contentgen API: `/v1beta/models/{model}:generateContent`. */
import { ContentgenError, contentgenErrorBody } from '../spec/contentgen-error.ts'
import { GatewayError } from '../spec/error.ts'
import type { Route } from './context.ts'

/** A route whose paths are generated here. Its `params.model` is the model's name alone. */
type MethodRoute = Omit<Route, 'method' | 'path' | 'shown' | 'hidden' | 'exclusive'>

/** The prefixes that clients use: their packages differ in the version, and only some write `models/`. */
const PLACES = ['/v1beta/models', '/v1beta', '/v1', '/v1alpha', '/v1beta1']

/** The routes of each method, by its name. The first prefix is the documented one. */
export function modelMethodRoutes(methods: Record<string, MethodRoute>): Route[] {
  return Object.entries(methods).flatMap(([name, route]) =>
    PLACES.map((place, index): Route => {
      const handle: Route['handle'] = (context) => {
        context.params = { model: modelOf(context.params.model ?? '', name) }
        return route.handle(context)
      }
      const documented = index === 0 ? { shown: `${place}/{model}:${name}` } : { hidden: true as const }
      return { ...route, ...documented, exclusive: true, method: 'POST', path: `${place}/:model{.+:${name}}`, handle }
    }),
  )
}

/** Clients of Vertex AI name a publisher, and with a project its location too. */
const PUBLISHED = /^(?:projects\/[^/]+\/locations\/[^/]+\/)?publishers\/([^/]+)\/models\/(.+)$/
/** What the clients add to a name without a slash. */
const DEFAULT_PUBLISHER = 'google'

/** `models/a/b:generateContent` and `publishers/a/models/b:generateContent` -> `a/b`. */
function modelOf(place: string, method: string): string {
  const name = place.slice(0, -method.length - 1)
  const [, publisher, model] = PUBLISHED.exec(name) ?? []
  if (model === undefined) return name.replace(/^models\//, '')
  return publisher === DEFAULT_PUBLISHER ? model : `${publisher}/${model}`
}

/** Errors for unknown methods; the routes of known methods must come first. */
export function unknownMethodRoutes(routes: Route[]): Route[] {
  const names = routes.flatMap(({ shown }) => /\{model\}:(\w+)$/.exec(shown ?? '')?.[1] ?? [])
  // Below /v1 other paths contain a colon too.
  return ['/v1/models', '/v1/publishers', '/v1/projects', '/v1beta', '/v1alpha', '/v1beta1'].map((place) => ({
    method: 'POST',
    path: `${place}/:model{.+:[^/:]+}`,
    hidden: true,
    operation: { summary: 'A method that models do not have', tag: 'Chat' },
    encodeError: contentgenErrorBody,
    ...(place === '/v1/models' ? {} : { errors_below: `${place}/` }),
    errorSchema: ContentgenError,
    handle({ params: { model = '' } }) {
      const name = model.slice(model.lastIndexOf(':') + 1).slice(0, 60)
      throw new GatewayError(
        'unknown_url',
        `Models have no method ${JSON.stringify(name)}; they have ${names.join(', ')}.`,
      )
    },
  }))
}
