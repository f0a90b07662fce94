/** The admin API's audit log. */
import Type from 'typebox'
import type { Context, Route } from '../../http/context.ts'
import { AuditRow } from '../../spec/audit.ts'
import { GatewayError, invalidValue } from '../../spec/error.ts'
import { orNull, parameter, titled } from '../../spec/fields.ts'
import type { Audit } from '../audit/audit.ts'
import { noSuch } from './edit.ts'
import { listAnswer, listRoute, readPage } from './list.ts'
import { adminRoute } from './route.ts'

type AuditRouteParts = { audit: Audit }

const AuditCheck = titled('AuditCheck', {
  rows: Type.Integer({ description: 'How many rows are in order.' }),
  last_hash: Type.String({ description: 'Of the last of them. Kept elsewhere, it proves the rows up to there.' }),
  broken: orNull(
    Type.Object({ sequence: Type.Integer(), trouble: Type.String() }),
    'The first row that is wrong; null: there is none.',
  ),
})

export function auditRoutes({ audit }: AuditRouteParts): Route[] {
  async function list(context: Context): Promise<Response> {
    const query = context.query()
    const own = context.admin.project_id
    const text = (name: string) => query.get(name)?.replaceAll('\0', '') || undefined
    const project_id = text('project_id') ?? own
    if (own !== undefined && project_id !== own) return listAnswer([], undefined)
    const { rows, next } = await audit.page({
      ...readPage(query),
      ...withoutUndefined({ actor: text('actor'), action: text('action'), object_id: text('object_id'), project_id }),
      ...withoutUndefined({ from_ms: readTime(query, 'from'), to_ms: readTime(query, 'to') }),
    })
    return listAnswer(rows, next)
  }

  async function show(context: Context): Promise<Response> {
    const { sequence = '' } = context.params
    const number = /^\d{1,15}$/.test(sequence) ? Number(sequence) : 0
    const { rows } = await audit.page({ limit: 1, after: [String(number + 1)] })
    const own = context.admin.project_id
    const row = rows.find((one) => one.sequence === number && (own === undefined || one.project_id === own))
    if (!row) throw noSuch('row of the audit log', sequence)
    return Response.json(row)
  }

  /** It reads every row: several at once would be a load, and would find the same. */
  let isVerifying = false
  async function verify(): Promise<Response> {
    if (isVerifying) {
      throw new GatewayError('rate_limit_exceeded', 'A check of the audit log is running: wait for its end.', {
        retry_after: 10,
      })
    }
    isVerifying = true
    try {
      return Response.json({ broken: null, ...(await audit.verify()) })
    } finally {
      isVerifying = false
    }
  }

  const time = (description: string) => parameter(description, Type.Integer({ minimum: 0 }))
  return [
    listRoute(['GET', '/admin/v1/audit', { right: 'read', project: 'own' }], {
      summary: 'List the audit log',
      description: 'Who changed what, newest first. A project_admin sees the rows of its project.',
      query: {
        actor: parameter('Only what this administrator did, such as `admin:adm_...`.'),
        action: parameter('Only this action, such as `token.create`.'),
        object_id: parameter('Only what was done to this object.'),
        project_id: parameter('Only what was done to this project and its objects.'),
        from: time('Unix seconds; included.'),
        to: time('Unix seconds; not included.'),
      },
      of: [AuditRow, 'AuditList'],
      handle: list,
    }),
    adminRoute(['GET', '/admin/v1/audit/verify', 'read'], {
      summary: 'Check the audit log',
      description:
        'Recomputes the hash of every row, and finds rows that were changed, removed or inserted. One at a time in each process.',
      response: AuditCheck,
      errors: ['rate_limit_exceeded', 'storage_unavailable'],
      handle: verify,
    }),
    adminRoute(['GET', '/admin/v1/audit/:sequence', { right: 'read', project: 'own' }], {
      summary: 'A row of the audit log',
      description: 'One change, by its number.',
      params: { sequence: 'The `sequence` of a row.' },
      response: AuditRow,
      errors: ['storage_unavailable'],
      handle: show,
    }),
  ]
}

function readTime(query: URLSearchParams, param: 'from' | 'to'): number | undefined {
  const text = query.get(param)
  if (text === null) return undefined
  if (/^\d{1,11}$/.test(text)) return Number(text) * 1000
  throw invalidValue(param, `"${param}" must be a time in unix seconds.`)
}

type Defined<T> = { [key in keyof T]?: Exclude<T[key], undefined> }
const withoutUndefined = <T extends object>(members: T): Defined<T> =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Defined<T>
