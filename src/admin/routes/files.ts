/** The admin API's files of tokens: list them, read one, and delete one, whose token may be revoked. */
import Type from 'typebox'
import type { Files } from '../../families/files/files.ts'
import type { Context, Route } from '../../http/context.ts'
import { fileResponse } from '../../http/file-response.ts'
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import { orNull, parameter, titled } from '../../spec/fields.ts'
import { STORED_PURPOSES } from '../../spec/file.ts'
import type { FileRow, FileRowStore } from '../../store/files/file-row.ts'
import type { Audit } from '../audit/audit.ts'
import { objectIn, originOf } from './edit.ts'
import { listRoute, pageAnswer, readOneOf, readPage } from './list.ts'
import { adminRoute } from './route.ts'

type FileRouteParts = {
  fileRows: Pick<FileRowStore, 'find' | 'list'>
  files: Pick<Files, 'remove' | 'open'>
  audit: Pick<Audit, 'record'>
  clock: Clock
}

const AdminFile = titled('AdminFile', {
  file_id: Type.String(),
  token_id: Type.String(),
  project_id: orNull(Type.String(), 'Of the token when the file was stored; null: none.'),
  purpose: Type.Enum([...STORED_PURPOSES]),
  filename: Type.String(),
  content_type: Type.String(),
  bytes: Type.Integer(),
  created_at: Type.Integer({ description: 'Unix seconds.' }),
  expires_at: orNull(Type.Integer(), 'Unix seconds; null: it is kept until it is deleted.'),
})
const AdminFileDeleted = titled('AdminFileDeleted', { file_id: Type.String(), deleted: Type.Boolean() })

const fileView = ({ output_key: _, ...file }: FileRow) => file

const params = { file_id: 'The id of a file.' }

export function adminFileRoutes({ fileRows, files, audit, clock }: FileRouteParts): Route[] {
  const { found, projectOf } = objectIn('file_id', 'file', (id) => fileRows.find(id, unixSeconds(clock)))

  async function list(context: Context): Promise<Response> {
    const query = context.query()
    const { limit, after } = readPage(query)
    const project_id = context.admin.project_id ?? query.get('project_id') ?? undefined
    const rows = await fileRows.list({ token_id: query.get('token_id') ?? undefined, project_id }, unixSeconds(clock), {
      purpose: readOneOf(query, 'purpose', STORED_PURPOSES),
      after: after?.[0],
      limit: limit + 1,
      order: 'desc',
    })
    return pageAnswer(rows, { limit, view: fileView, keyOf: ({ file_id }) => [file_id] })
  }

  async function content(context: Context): Promise<Response> {
    const file = await found(context)
    const { file_id, project_id, filename } = file
    const stored = await files.open(file)
    // Recorded before anybody has read it.
    const event = { action: 'file.read_content', object_type: 'file', object_id: file_id, project_id }
    await audit.record({ ...originOf(context), ...event })
    return fileResponse(context.request, stored, { filename, cache_control: 'no-store' })
  }

  async function remove(context: Context): Promise<Response> {
    const file = await found(context)
    const { file_id, token_id, project_id, filename, bytes } = file
    const event = { action: 'file.delete', object_type: 'file', object_id: file_id, project_id }
    await audit.record({ ...originOf(context), ...event, before: { token_id, filename, bytes } })
    await files.remove(file_id, { token_id, project_id: project_id ?? undefined })
    return Response.json({ file_id, deleted: true })
  }

  return [
    listRoute(['GET', '/admin/v1/files', { right: 'read', project: 'own' }], {
      summary: 'List files',
      description: 'Newest first, without their content. A project_admin sees those of its project.',
      query: {
        purpose: parameter('Only files of this purpose.', Type.Enum([...STORED_PURPOSES])),
        token_id: parameter('Only files of this token.'),
        project_id: parameter('Only files of this project.'),
      },
      of: [AdminFile, 'AdminFileList'],
      errors: ['storage_unavailable'],
      handle: list,
    }),
    adminRoute(['GET', '/admin/v1/files/:file_id', { right: 'read', project: projectOf }], {
      summary: 'Look at a file',
      description: 'What is known of it, without its content.',
      params,
      response: AdminFile,
      errors: ['storage_unavailable'],
      handle: async (context) => Response.json(fileView(await found(context))),
    }),
    adminRoute(['GET', '/admin/v1/files/:file_id/content', { right: 'contents', project: projectOf }], {
      summary: 'Download a file',
      description:
        'Its bytes. Only for an owner, and for the project_admin of its project. Each read is a row of the audit log.',
      params,
      media: ['application/octet-stream'],
      otherResponses: {
        206: 'The requested part; `content-range` has its position.',
        304: 'The cached file is current.',
      },
      errors: ['file_not_found', 'range_not_satisfiable', 'storage_unavailable'],
      handle: content,
    }),
    adminRoute(['DELETE', '/admin/v1/files/:file_id', { right: 'manage', project: projectOf }], {
      summary: 'Delete a file',
      description: 'With its content. Requests and conversations that name it fail from then on.',
      params,
      response: AdminFileDeleted,
      errors: ['storage_unavailable'],
      handle: remove,
    }),
  ]
}
