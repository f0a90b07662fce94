/** One call of the playground at a time, which can be stopped. */
import { useEffect, useRef, useState } from 'react'
import { send } from '../../api/client.ts'
import { projectHeader } from './run-chat.ts'

export type Called<T> = { data: T; ms: number; cost: number | null; request_id: string | null }
type CallState<T> = { called?: Called<T>; error?: Error; isRunning: boolean }
/** The path of the client's API and the body that is sent there. */
export type PlaygroundCall = { path: string; body: Record<string, unknown> }
type Order<T> = PlaygroundCall & {
  project: string
  /** The file of a call that is sent as a form; the body has its other fields. */
  file?: File
  /** Default: the JSON of the response. */
  read?(response: Response): Promise<T>
}

/** `call.run` keeps the former result until there is a new one. */
export function useCall<T>() {
  const [state, setState] = useState<CallState<T>>({ isRunning: false })
  const controller = useRef<AbortController>(undefined)
  useEffect(() => () => controller.current?.abort(), [])
  const run = async (order: Order<T>): Promise<Called<T> | undefined> => {
    controller.current?.abort()
    const own = new AbortController()
    controller.current = own
    setState(({ called }) => ({ ...(called && { called }), isRunning: true }))
    try {
      const called = await callPlayground(order, own.signal)
      if (!own.signal.aborted) setState({ called, isRunning: false })
      return called
    } catch (error) {
      if (controller.current !== own) return undefined
      if (own.signal.aborted) setState(({ called }) => ({ ...(called && { called }), isRunning: false }))
      else {
        const failure = error instanceof Error ? error : new Error(String(error))
        setState(({ called }) => ({ ...(called && { called }), error: failure, isRunning: false }))
      }
      return undefined
    }
  }
  return { ...state, run, stop: () => controller.current?.abort() }
}

async function callPlayground<T>(order: Order<T>, signal: AbortSignal): Promise<Called<T>> {
  const { path, body, project, file, read = (response) => response.json() as Promise<T> } = order
  const began = performance.now()
  const headers = projectHeader(project)
  const sent = file ? formOf(body, file) : body
  const response = await send(`POST /admin/v1/playground${path}`, { body: sent, headers, signal })
  const data = await read(response)
  // Absent of a stream, whose charge is known at its end, and not a number where there is no price.
  const cost = Number(response.headers.get('x-gatehouse-cost') ?? Number.NaN)
  return {
    data,
    ms: performance.now() - began,
    cost: Number.isFinite(cost) ? cost : null,
    request_id: response.headers.get('x-request-id'),
  }
}

/** A list has a field for each of its values. */
function formOf(fields: Record<string, unknown>, file: File): FormData {
  const form = new FormData()
  for (const [name, value] of Object.entries(fields))
    for (const one of Array.isArray(value) ? value : [value])
      form.append(Array.isArray(value) ? `${name}[]` : name, String(one))
  form.append('file', file, file.name)
  return form
}
