/** The conversations of the playground. They live outside the page, so that leaving it neither stops nor loses them. */
import { useSyncExternalStore } from 'react'
import type { Body } from './chat-body.ts'
import type { Answer, Attachment, ChatMessage } from './chat-types.ts'
import { MAX_MESSAGES } from './chat-types.ts'
import { newAnswer, runChat } from './run-chat.ts'

/** What was typed and is not in the address: it is contents. */
export type Draft = { text: string; files: Attachment[]; system: string; tools: string; schema: string }
type ChatState = {
  /** The conversation of each column. */
  columns: ChatMessage[][]
  draft: Draft
  /** The row of the request log that was taken over. */
  loaded_from: string
}
type BodyMaker = (messages: ChatMessage[]) => Body
type Run = { column: number; project: string; bodyOf: BodyMaker }

const EMPTY_DRAFT: Draft = { text: '', files: [], system: '', tools: '', schema: '' }
const empty = (): ChatState => ({ columns: [], draft: EMPTY_DRAFT, loaded_from: '' })

let state = empty()
let person = ''
const listeners = new Set<() => void>()
const running = new Map<number, AbortController>()
let is_notification_due = false

const subscribe = (listener: () => void) => {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

function change(changes: Partial<ChatState>): void {
  state = { ...state, ...changes }
  if (is_notification_due) return
  // A stream has many chunks between two frames; four of them are shown together.
  is_notification_due = true
  setTimeout(() => {
    is_notification_due = false
    for (const listener of listeners) listener()
  }, 16)
}

/** Typing must be shown at once, or the caret would jump. */
function changeNow(changes: Partial<ChatState>): void {
  state = { ...state, ...changes }
  for (const listener of listeners) listener()
}

export const useChat = (): ChatState => useSyncExternalStore(subscribe, () => state)

/** Somebody else who logs in here sees nothing of what the person before typed. */
export function openFor(actor: string): void {
  if (person === actor) return
  if (person !== '') {
    stopAll()
    state = empty()
  }
  person = actor
}

export const changeDraft = (changes: Partial<Draft>): void => changeNow({ draft: { ...state.draft, ...changes } })

const messagesOf = (column: number): ChatMessage[] => state.columns[column] ?? []

function setMessages(column: number, messages: ChatMessage[]): void {
  const columns = Array.from({ length: Math.max(state.columns.length, column + 1) }, (_, index) => messagesOf(index))
  columns[column] = messages
  change({ columns })
}

/** Whether a conversation has room for a question and its answer. */
export const hasRoom = (messages: ChatMessage[]): boolean => messages.length + 2 <= MAX_MESSAGES

/** Adds a message to a conversation, and asks its model. */
export function ask(message: ChatMessage, run: Run): void {
  const messages = messagesOf(run.column)
  if (running.has(run.column) || !hasRoom(messages)) return
  start([...messages, message], run)
}

/** Asks again for the last answer. */
export function retry(run: Run): void {
  const messages = messagesOf(run.column)
  const question = messages.findLastIndex(({ role }) => role !== 'assistant')
  if (question === -1 || running.has(run.column)) return
  start(messages.slice(0, question + 1), run)
}

function start(messages: ChatMessage[], { column, project, bodyOf }: Run): void {
  const body = bodyOf(messages)
  const controller = new AbortController()
  running.set(column, controller)
  setMessages(column, [...messages, newAnswer()])
  const onChange = (answer: Answer) => {
    if (running.get(column) !== controller) return
    setMessages(column, [...messages, answer])
    if (answer.state !== 'running') running.delete(column)
  }
  void runChat({ body, project, signal: controller.signal, onChange })
}

export function stop(column: number): void {
  running.get(column)?.abort()
}

export function stopAll(): void {
  for (const controller of running.values()) controller.abort()
}

/** The conversation of a column that is closed goes; those after it move up. */
export function removeColumn(column: number): void {
  stopAll()
  running.clear()
  change({ columns: state.columns.filter((_, index) => index !== column).map(settledMessages) })
}

/** What was running when its column moved is stopped. */
const settledMessages = (messages: ChatMessage[]): ChatMessage[] =>
  messages.map((message) =>
    message.role === 'assistant' && message.state === 'running' ? { ...message, state: 'stopped' } : message,
  )

export function clearChat(): void {
  stopAll()
  running.clear()
  changeNow({ columns: [] })
}

/** Takes over a conversation, such as one of the request log. */
export function loadChat(loaded_from: string, messages: ChatMessage[], draft: Partial<Draft>): void {
  stopAll()
  running.clear()
  changeNow({ loaded_from, columns: [messages], draft: { ...EMPTY_DRAFT, ...draft } })
}
