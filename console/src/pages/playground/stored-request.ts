/** Makes a request again from its contents in the request log. */
import { useQuery } from '@tanstack/react-query'
import { useEffect } from 'react'
import { ApiError, call } from '../../api/client.ts'
import { useMe } from '../../api/hooks.ts'
import type { ContentsPart, RequestContents } from '../../api/types.ts'
import { loadChat, useChat } from './chat-store.ts'
import type { ChatMessage } from './chat-types.ts'
import { newAnswer } from './run-chat.ts'

type Stored = {
  contents: RequestContents | undefined
  isLoading: boolean
  /** What there is to say of them; undefined: nothing. */
  notice: string | undefined
}

/** `row`: of the request log; empty: none. Each reading of contents is audited, so they are not read again. */
export function useStoredContents(row: string): Stored {
  const canRead = useMe()?.rights.includes('contents') ?? false
  const { data, error, isLoading } = useQuery({
    queryKey: ['GET /admin/v1/requests/{request_row}/contents', { params: { request_row: row } }],
    queryFn: ({ signal }) =>
      call('GET /admin/v1/requests/{request_row}/contents', { params: { request_row: row }, signal }),
    enabled: row !== '' && canRead,
    retry: false,
    staleTime: Number.POSITIVE_INFINITY,
  })
  return { contents: data, isLoading, notice: noticeOf(row, canRead, error) }
}

function noticeOf(row: string, canRead: boolean, error: Error | null): string | undefined {
  if (row === '') return undefined
  if (!canRead) return 'You may not see the contents of this request: only its model is filled in.'
  if (error instanceof ApiError && error.status === 404)
    return 'The contents of this request are not stored: only its model is filled in.'
  return error ? `The contents of this request could not be read: ${error.message}` : undefined
}

/** Takes the messages over into the chat once, the last question as the draft. */
export function useStoredChat(row: string): string | undefined {
  const { loaded_from } = useChat()
  const { contents, notice } = useStoredContents(row)
  useEffect(() => {
    if (contents && loaded_from !== row) takeOver(row, contents)
  }, [contents, row, loaded_from])
  return notice
}

/** The text of each part of the input in its order, such as the query of a rerank and its documents. */
export const storedTexts = (contents: RequestContents | undefined): string[] =>
  contents?.input.map(({ parts }) => textOf(parts)).filter(Boolean) ?? []

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
  if (role === 'assistant') {
    const tool_calls = parts
      .filter(({ type }) => type === 'tool_call')
      .map(({ id = '', name = '', text: given = '{}' }) => ({ id, name, arguments: given }))
    return { ...newAnswer(), state: 'done', text, tool_calls }
  }
  if (role === 'tool') {
    const results = parts.map(({ id = '', name = 'tool', text: result = '' }) => ({ id, name, text: result }))
    return { role: 'tool', results }
  }
  return { role: 'user', text, files: [] }
}
