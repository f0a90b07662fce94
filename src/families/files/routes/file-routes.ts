/** The routes of files, in the form of the OpenAI API, and in that of the Messages API for clients that send `anthropic-version`. */
import Type from 'typebox'
import type { Context, Route } from '../../../http/context.ts'
import { fileResponse } from '../../../http/file-response.ts'
import { jsonResponse } from '../../../http/live.ts'
import { encodeMessagesError } from '../../../protocols/messages/client/error.ts'
import { errorBody } from '../../../spec/error.ts'
import { parameter } from '../../../spec/fields.ts'
import { FileCreate, FileDeleted, FileList, FileObject, STORED_PURPOSES } from '../../../spec/file.ts'
import type { Operation, Parameter } from '../../../spec/operation.ts'
import { formatOf, isOfMessages, queryPage } from './file-formats.ts'
import { receiveUpload, type UploadParts } from './upload-form.ts'

const params = { file_id: 'The id of a file.' }
const DIALECTS = 'Clients that send `anthropic-version` get the form of the Messages API.'

const query: Record<string, Parameter> = {
  purpose: parameter('Only files of this purpose.', Type.Enum([...STORED_PURPOSES])),
  after: parameter('The id after which the page starts.'),
  limit: parameter('Default 10000; with `anthropic-version` 20.', Type.Integer({ minimum: 1, maximum: 10_000 })),
  order: parameter('By time of creation. Default `desc`: newest first.', Type.Enum(['asc', 'desc'])),
}

export function fileRoutes(parts: UploadParts): Route[] {
  const { files, clock, fileSettings } = parts

  return [
    route('POST', '/v1/files', {
      operation: {
        summary: 'Upload a file',
        description: `A form with the file as \`file\`. ${DIALECTS}`,
        request: FileCreate,
        files: ['file'],
        form_only: true,
        response: FileObject,
        links: [
          {
            at: '/id',
            to: ['GET /v1/files/{file_id}', 'GET /v1/files/{file_id}/content', 'DELETE /v1/files/{file_id}'],
          },
        ],
        errors: [
          'missing_required_parameter',
          'invalid_value',
          'invalid_type',
          'unsupported_value',
          'unsupported_parameter',
          'request_too_large',
          'request_timeout',
          'unsupported_media_type',
          'storage_quota_exceeded',
        ],
      },
      async handle(context) {
        const format = formatOf(context.request)
        const file = await receiveUpload(context, (fields) => format.read(fields, fileSettings()), parts)
        return Response.json(format.one(file))
      },
    }),
    route('GET', '/v1/files', {
      operation: {
        summary: 'List the files of the token',
        description: `One page. ${DIALECTS} Its pages have \`after_id\` and \`before_id\`; \`ids[]\` names files.`,
        query,
        response: FileList,
        errors: ['invalid_value'],
      },
      async handle(context) {
        const filter = queryPage(context.request)
        // One more tells whether there are more.
        const found = await files.list(context.caller, { ...filter, limit: filter.limit + 1 })
        return jsonResponse(formatOf(context.request).list(found, filter), { context, clock })
      },
    }),
    route('GET', '/v1/files/:file_id', {
      operation: {
        summary: 'Retrieve a file',
        description: `What is known of it, without its content. ${DIALECTS}`,
        params,
        response: FileObject,
        errors: ['file_not_found'],
      },
      async handle(context) {
        return Response.json(formatOf(context.request).one(await files.find(idOf(context), context.caller)))
      },
    }),
    route('GET', '/v1/files/:file_id/content', {
      operation: {
        summary: 'Download a file',
        description: 'Its bytes as they were uploaded. Supports range requests.',
        params,
        media: ['application/octet-stream'],
        otherResponses: {
          206: 'The requested part; `content-range` has its position.',
          304: 'The cached file is current.',
        },
        errors: ['file_not_found', 'range_not_satisfiable'],
      },
      async handle(context) {
        const file = await files.find(idOf(context), context.caller)
        const { filename } = file
        return fileResponse(context.request, await files.open(file), { filename, cache_control: 'private, no-cache' })
      },
    }),
    route('DELETE', '/v1/files/:file_id', {
      operation: {
        summary: 'Delete a file',
        description: `Its content is removed too. ${DIALECTS}`,
        params,
        response: FileDeleted,
        errors: ['file_not_found'],
      },
      async handle(context) {
        await files.remove(idOf(context), context.caller)
        return Response.json(formatOf(context.request).deleted(idOf(context)))
      },
    }),
  ]
}

const idOf = ({ params: { file_id = '' } }: Context): string => file_id

type RouteRest = { operation: Omit<Operation, 'tag'>; handle: Route['handle'] }

const route = (method: Route['method'], path: string, { operation, handle }: RouteRest): Route => ({
  method,
  path,
  operation: { ...operation, tag: 'Files' },
  encodeError: (error, request_id, request) =>
    request && isOfMessages(request) ? encodeMessagesError(error, request_id) : errorBody(error),
  handle,
})
