/** The admin API's response cache: its size and its purge. */
import Type from 'typebox'
import type { Projects } from '../../accounts/projects.ts'
import type { ResponseCache } from '../../calls/cache/response-cache.ts'
import { type BodyParts, optionalBodyReader } from '../../http/checked-body.ts'
import type { Context, Route } from '../../http/context.ts'
import { invalidValue } from '../../spec/error.ts'
import { closedObject, orNull, text, titled } from '../../spec/fields.ts'
import { noSuch, originOf, present } from './edit.ts'
import { adminRoute } from './route.ts'

type CacheRouteParts = BodyParts & {
  cache: Pick<ResponseCache, 'purge' | 'size'>
  projects: Pick<Projects, 'find'>
  /** Whether the configuration or a provider has, or had, this model. */
  isModel(id: string): boolean
}

const PurgeRequest = closedObject('CachePurgeRequest', {
  model: text({ minLength: 1, maxLength: 512 }, 'Only the responses of this model. Default: all.'),
  project_id: text(
    { minLength: 1, maxLength: 512 },
    'Only the responses to this project, in place of `model`. Those with the scope `all` stay.',
  ),
})

const orUnknown = (description: string) => orNull(Type.Integer({ minimum: 0 }), description)

const Size = titled('CacheSize', {
  storage: Type.Enum(['memory', 'database', 'valkey']),
  entries: orUnknown('Of the database, or of the memory of this process. null: of Valkey, which does not say.'),
  bytes: orUnknown('The same of their sizes.'),
})

const Purge = titled('CachePurge', {
  model: orNull(Type.String()),
  project_id: orNull(Type.String()),
  entries: orNull(
    Type.Integer({ minimum: 0 }),
    'How many were deleted of the database, or of the memory of this process. null: they are in Valkey, where they are not found any more, and go at the end of their time.',
  ),
})

export function cacheRoutes({ cache, projects, isModel, ...parts }: CacheRouteParts): Route[] {
  const readPurge = optionalBodyReader(PurgeRequest, parts)

  async function purge(context: Context): Promise<Response> {
    const { model, project_id } = await readPurge(context)
    if (model !== undefined && project_id !== undefined)
      throw invalidValue('project_id', 'Give "model" or "project_id", not both.')
    if (model !== undefined && !isModel(model)) throw noSuch('model', model)
    if (project_id !== undefined) present(await projects.find(project_id), 'project', project_id)
    const { entries = null } = await cache.purge(model ?? project_id, {
      ...originOf(context),
      at_ms: parts.clock.now(),
      action: 'cache.purge',
      object_type: 'cache',
      object_id: model ?? project_id ?? '',
    })
    return Response.json({ model: model ?? null, project_id: project_id ?? null, entries })
  }

  return [
    adminRoute(['GET', '/admin/v1/cache', 'read'], {
      summary: 'Read the size of the response cache',
      description: 'How many responses are cached, and where.',
      response: Size,
      errors: ['storage_unavailable'],
      async handle() {
        const { storage, entries = null, bytes = null } = await cache.size()
        return Response.json({ storage, entries, bytes })
      },
    }),
    adminRoute(['POST', '/admin/v1/cache/purge', 'operate'], {
      summary: 'Purge the response cache',
      description:
        'Cached responses, of all models, of one, or to one project, are used no more: at once by the process that answers, within a second by every other. Responses that are just being made are not cached.',
      request: PurgeRequest,
      body_optional: true,
      example: {},
      response: Purge,
      errors: ['object_not_found', 'storage_unavailable'],
      handle: purge,
    }),
  ]
}
