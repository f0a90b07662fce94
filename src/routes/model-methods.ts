/** Paths that end in a method, as in the contentgen API: `/v1beta/models/{model}:generateContent`. */

import type { Route } from '../http/context.ts'
import { ContentgenError, contentgenErrorBody } from '../spec/contentgen-error.ts'
import { GatewayError } from '../spec/error.ts'

/** A route whose paths are generated here. Its `params.model` is the model's name alone. */
type MethodRoute = Omit<Route, 'method' | 'path' | 'shown' | 'hidden' | 'exclusive'>

/** Clients in the express mode of Vertex AI, and with its API keys. */
const VERTEX = '/v1beta1/publishers/google'

/** The prefixes that clients use: their packages differ in the version, and only some write `models/`. */
const PLACES = ['/v1beta/models', '/v1beta', '/v1', '/v1alpha', `${VERTEX}/models`]

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

/** `models/a/b:generateContent` -> `a/b`. */
const modelOf = (place: string, method: string): string => place.slice(0, -method.length - 1).replace(/^models\//, '')

/** Errors for unknown methods; the routes of known methods must come first. */
export function unknownMethodRoutes(routes: Route[]): Route[] {
  const names = routes.flatMap(({ shown }) => /\{model\}:(\w+)$/.exec(shown ?? '')?.[1] ?? [])
  // Below /v1 other paths contain a colon too.
  return ['/v1/models', '/v1beta', '/v1alpha', VERTEX].map((place) => ({
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
