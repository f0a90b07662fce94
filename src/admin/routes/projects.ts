/** The admin API's projects. */
import type { Projects } from '../../accounts/projects.ts'
import { type BodyParts, bodyReader } from '../../http/checked-body.ts'
import type { Context, Route } from '../../http/context.ts'
import { GatewayError, invalidValue } from '../../spec/error.ts'
import { Project, ProjectChange, ProjectOrder } from '../../spec/token.ts'
import { assertGuards, assertMatch, ETAG_HEADER, IF_MATCH_HEADER, objectAnswer, objectIn, originOf } from './edit.ts'
import { ACCOUNT_PARAMETERS, listAnswer, listRoute, readAccountFilter, readPage } from './list.ts'
import { adminRoute } from './route.ts'

type ProjectRouteParts = BodyParts & {
  projects: Projects
  /** Why contents cannot be recorded; undefined: they can. */
  contentsProblem(): string | undefined
  /** Of the configuration. */
  guardNames(): readonly string[]
}

const ROOT = '/admin/v1/projects'
const ONE = `${ROOT}/:project_id`
const params = { project_id: 'The id of a project.' }
const inPath = ({ params: { project_id = '' } }: Context) => project_id

/**
 * What a project_admin may change of its project. The rest is what it was given: limits, budgets, models, addresses, and
 * the name, by which the configuration file adopts a project.
 */
const OWN_FIELDS: readonly (keyof ProjectChange)[] = ['labels']

export function projectRoutes({ projects, contentsProblem, guardNames, ...parts }: ProjectRouteParts): Route[] {
  const readOrder = bodyReader(ProjectOrder, parts)
  const readChange = bodyReader(ProjectChange, parts)

  const { found } = objectIn('project_id', 'project', projects.find)

  async function list(context: Context): Promise<Response> {
    const { project_id, memberships } = context.admin
    const query = context.query()
    const page = { ...readPage(query), ...readAccountFilter(query) }
    if (project_id !== undefined) {
      const ids = memberships ? memberships.map((one) => one.project_id) : [project_id]
      const own = await Promise.all(ids.map((id) => projects.find(id)))
      return listAnswer(own.filter(Boolean), undefined)
    }
    const { rows, next } = await projects.page(page)
    return listAnswer(rows, next)
  }

  function assertContents({ log_contents }: ProjectChange): void {
    const problem = log_contents === 'on' || log_contents === 'header' ? contentsProblem() : undefined
    if (problem) throw invalidValue('log_contents', problem)
  }

  async function create(context: Context): Promise<Response> {
    const order = await readOrder(context)
    assertContents(order)
    assertGuards(order, guardNames())
    return objectAnswer(context, await projects.create(order, originOf(context)))
  }

  async function update(context: Context): Promise<Response> {
    const change = await readChange(context)
    assertContents(change)
    assertGuards(change, guardNames())
    if (context.admin.role === 'project_admin') assertOwnFields(change)
    const { project_id } = await found(context)
    const changed = await projects.update(
      project_id,
      (present) => {
        assertMatch(context, present)
        return change
      },
      originOf(context),
    )
    return objectAnswer(context, changed)
  }

  async function remove(context: Context): Promise<Response> {
    const project = await found(context)
    const check = (present: Project) => assertMatch(context, present)
    return objectAnswer(context, await projects.delete(project.project_id, originOf(context), check))
  }

  return [
    listRoute(['GET', ROOT, { right: 'read', project: 'own' }], {
      summary: 'List projects',
      description: 'Without deleted ones. Who is bound to projects sees these.',
      query: ACCOUNT_PARAMETERS,
      of: [Project, 'ProjectList'],
      handle: list,
    }),
    adminRoute(['POST', ROOT, 'manage'], {
      summary: 'Create a project',
      description: 'Absent fields are not limited. The name must not be that of another project.',
      request: ProjectOrder,
      response: Project,
      responseHeaders: ETAG_HEADER,
      example: { name: 'search', models: ['openai/*'], budgets: [{ amount: 100, window: 'month' }] },
      handle: create,
    }),
    adminRoute(['GET', ONE, { right: 'read', project: inPath }], {
      summary: 'A project',
      description: 'With what is set for it. Its tokens are at `/admin/v1/tokens?project_id=...`.',
      params,
      response: Project,
      responseHeaders: ETAG_HEADER,
      handle: async (context) => objectAnswer(context, await found(context)),
    }),
    adminRoute(['PATCH', ONE, { right: 'manage', project: inPath }], {
      summary: 'Change a project',
      description:
        'Absent fields stay as they are; a given field replaces the whole of what was set. Its tokens obey within a second. A project_admin may change only its labels.',
      params,
      headers: IF_MATCH_HEADER,
      request: ProjectChange,
      response: Project,
      responseHeaders: ETAG_HEADER,
      example: { disabled: true },
      handle: update,
    }),
    adminRoute(['DELETE', ONE, 'manage'], {
      summary: 'Delete a project',
      description: 'Its tokens are refused from now on. What it has used keeps its name; the name can be used again.',
      params,
      headers: IF_MATCH_HEADER,
      response: Project,
      handle: remove,
    }),
  ]
}

function assertOwnFields(change: ProjectChange): void {
  const refused = Object.keys(change).find((name) => !OWN_FIELDS.some((own) => own === name))
  if (refused === undefined) return
  throw new GatewayError(
    'permission_denied',
    `A project_admin may change only ${OWN_FIELDS.join(' and ')} of its project; ${refused} is set by an operator.`,
    { param: refused },
  )
}
