/** The playground of the console: the paths that clients call, for a person with a session instead of a token. */
import Type from 'typebox'
import type { Tokens } from '../../accounts/tokens.ts'
import type { AdminAccess, Context, Route } from '../../http/context.ts'
import { queryOf } from '../../http/request-parts.ts'
import { GatewayError } from '../../spec/error.ts'
import { parameter } from '../../spec/fields.ts'
import type { Caller } from '../../spec/token.ts'
import { PROJECT_HEADER } from '../access/memberships.ts'
import { noSuch, originOf } from './edit.ts'
import { adminRoute } from './route.ts'

export type PlaygroundRouteParts = {
  tokens: Pick<Tokens, 'playground'>
  /** Admits the request as one of this caller, as if its token had been sent. Throws GatewayError. */
  enterAs(context: Context, caller: Caller): void
}

const ROOT = '/admin/v1/playground'
const PROJECT_PARAMETER = 'project'
/** By which the calls are found in the request log, and routed where a target has such a condition. */
const TAG = 'playground'
const ACCESS: AdminAccess = { right: 'call', project: 'own' }

/** Each of the routes once more, for who has the right `call`. */
export function playgroundRoutes(routes: Route[], { tokens, enterAs }: PlaygroundRouteParts): Route[] {
  async function enter(context: Context): Promise<void> {
    const { admin } = context
    const project_id = projectOf(context)
    const caller = await tokens.playground({ actor: personOf(admin.actor), project_id }, context, originOf(context))
    enterAs(context, caller)
    // Who is bound to a project learns nothing of what lies behind its models.
    context.is_explained = admin.project_id === undefined && context.header('x-gatehouse-explain') === '1'
    tag(context)
  }

  const mirrored = ({ public: _, socket: __, serves_files: ___, errors_below: ____, ...route }: Route): Route => ({
    ...route,
    path: `${ROOT}${route.path}`,
    hidden: true,
    admin: ACCESS,
    async handle(context) {
      await enter(context)
      const response = await route.handle(context)
      if (!response.headers.has('cache-control')) response.headers.set('cache-control', 'no-store')
      return response
    },
  })

  return [...routes.map(mirrored), ...(['POST', 'GET', 'DELETE'] as const).map(describedRoute)]
}

/** For the documents: what matches none of the others. */
const describedRoute = (method: 'POST' | 'GET' | 'DELETE'): Route => {
  const route = adminRoute([method, `${ROOT}/:path{.+}`, ACCESS], {
    summary: SUMMARIES[method],
    description:
      'The path is one that clients call, such as `v1/chat/completions`, with the same query, body and response, streamed too: chat in all its APIs, images, speech, transcriptions, embeddings, rerank, moderations, videos, 3D models and their files. The call is one of the person who has the session, in the project that is named; its limits and budgets count, and the request log names the person as `playground`. A person who is bound to a project calls in that one. Others name one, or none: then it is billed to no project.',
    params: { path: 'The path without its first slash.' },
    query: {
      [PROJECT_PARAMETER]: parameter(`As ${PROJECT_HEADER}, for the address of a file.`),
    },
    headers: { [PROJECT_HEADER]: parameter('The id of the project that is billed.') },
    response: Type.Unknown({ description: 'As the path returns it.' }),
    errors: ['unknown_url', 'address_not_allowed', 'project_disabled'],
    handle({ params: { path = '' } }) {
      const message = `The playground has no ${method} /${path.slice(0, 200)}: it has the paths that clients call, such as /v1/chat/completions.`
      throw new GatewayError('unknown_url', message)
    },
  })
  // Added here, since the paths themselves say which errors their bodies have.
  return method === 'POST' ? { ...route, operation: { ...route.operation, ...BODY } } : route
}

const BODY = {
  example: { model: 'sandbox/general', messages: [{ role: 'user', content: 'Hello' }] },
  request: Type.Object({}, { additionalProperties: true, title: 'PlaygroundRequest' }),
}

const SUMMARIES = {
  POST: 'Call a model in the playground',
  GET: 'Read tasks, files and models in the playground',
  DELETE: 'Delete what the playground has stored',
}

/** Null: of no project. Throws object_not_found for a project that the person may not use. */
function projectOf(context: Context): string | null {
  const given = context.header(PROJECT_HEADER) ?? queryOf(context.request).get(PROJECT_PARAMETER)
  const own = context.admin.project_id
  if (own !== undefined && given !== null && given !== own) throw noSuch('project', given)
  return own ?? given
}

/** Each login by a link has a name of its own; the person is the same. */
const personOf = (actor: string): string => (actor.startsWith('login:') ? 'login' : actor)

function tag(context: Context): void {
  const call = context as Context & { options?: { tags?: readonly string[] } }
  call.options = { ...call.options, tags: [...new Set([...(call.options?.tags ?? []), TAG])] }
}
