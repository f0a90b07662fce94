/** Takes over what the request log has stored of a request: its messages, and its last question as the draft. */
import { useQuery } from '@tanstack/react-query'
import { useEffect } from 'react'
import { ApiError, call } from '../../api/client.ts'
import { useMe } from '../../api/hooks.ts'
import type { ContentsPart, RequestContents } from '../../api/types.ts'
import { loadChat, useChat } from './chat-store.ts'
import type { ChatMessage } from './chat-types.ts'
import { newAnswer } from './run-chat.ts'

/** What there is to say of the request that the address names; undefined: nothing. */
export function useStoredRequest(row: string): string | undefined {
  const canRead = useMe()?.rights.includes('contents') ?? false
  const { loaded_from } = useChat()
  const { data, error } = useQuery({
    queryKey: ['GET /admin/v1/requests/{request_row}/contents', { params: { request_row: row } }],
    queryFn: ({ signal }) =>
      call('GET /admin/v1/requests/{request_row}/contents', { params: { request_row: row }, signal }),
    enabled: row !== '' && canRead && loaded_from !== row,
    retry: false,
    gcTime: 0,
  })
  useEffect(() => {
    if (data && loaded_from !== row) takeOver(row, data)
  }, [data, row, loaded_from])
  if (row === '') return undefined
  if (!canRead) return 'You may not see the contents of this request: only its model is filled in.'
  if (error instanceof ApiError && error.status === 404)
    return 'The contents of this request are not stored: only its model is filled in.'
  return error ? `The contents of this request could not be read: ${error.message}` : undefined
}

function takeOver(row: string, { input }: RequestContents): void {
  const isSystem = (role: string) => role === 'system' || role === 'developer'
  const system = input.filter(({ role }) => isSystem(role)).map(({ parts }) => textOf(parts))
  const turns = input.filter(({ role }) => !isSystem(role))
  const question = turns.at(-1)?.role === 'user' ? turns.pop() : undefined
  loadChat(row, turns.map(toMessage), {
    system: system.join('\n'),
    text: question ? textOf(question.parts) : '',
  })
}

const textOf = (parts: ContentsPart[]): string =>
  parts.flatMap(({ type, text }) => (type === 'text' && text !== undefined ? [text] : [])).join('\n')

function toMessage({ role, parts }: RequestContents['input'][number]): ChatMessage {
  const text = textOf(parts)
  if (role === 'assistant' || role === 'model') {
    const tool_calls = parts
      .filter(({ type }) => type === 'tool_call')
      .map(({ id = '', name = '', text: given = '{}' }) => ({ id, name, arguments: given }))
    return { ...newAnswer(), state: 'done', text, tool_calls }
  }
  const results = parts.filter(({ type }) => type === 'tool_result' || type === 'tool_call_response')
  if (role === 'tool' || results.length > 0)
    return {
      role: 'tool',
      results: (results.length > 0 ? results : parts).map(({ id = '', name = 'tool', text: result = '' }) => ({
        id,
        name,
        text: result,
      })),
    }
  return { role: 'user', text, files: [] }
}
