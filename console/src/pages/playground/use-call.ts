/** One call of the playground at a time, which can be stopped. */
import { useEffect, useRef, useState } from 'react'
import { send } from '../../api/client.ts'
import { projectHeader } from './run-chat.ts'

export type Called<T> = { data: T; ms: number; cost: number | null; request_id: string | null }
type CallState<T> = { called?: Called<T>; error?: Error; isRunning: boolean }
/** The path of the client's API and the body that is sent there. */
export type PlaygroundCall = { path: string; body: Record<string, unknown> }
type Order = PlaygroundCall & { project: string }

/** `call.run` keeps the former result until there is a new one. */
export function useCall<T>() {
  const [state, setState] = useState<CallState<T>>({ isRunning: false })
  const controller = useRef<AbortController>(undefined)
  useEffect(() => () => controller.current?.abort(), [])
  const run = async (order: Order): Promise<Called<T> | undefined> => {
    controller.current?.abort()
    const own = new AbortController()
    controller.current = own
    setState(({ called }) => ({ ...(called && { called }), isRunning: true }))
    try {
      const called = await callPlayground<T>(order, own.signal)
      if (!own.signal.aborted) setState({ called, isRunning: false })
      return called
    } catch (error) {
      if (controller.current !== own) return undefined
      if (own.signal.aborted) setState(({ called }) => ({ ...(called && { called }), isRunning: false }))
      else setState({ error: error instanceof Error ? error : new Error(String(error)), isRunning: false })
      return undefined
    }
  }
  return { ...state, run, stop: () => controller.current?.abort() }
}

async function callPlayground<T>({ path, body, project }: Order, signal: AbortSignal): Promise<Called<T>> {
  const began = performance.now()
  const headers = projectHeader(project)
  const response = await send(`POST /admin/v1/playground${path}`, { body, headers, signal })
  const data = (await response.json()) as T
  const cost = response.headers.get('x-gatehouse-cost')
  return {
    data,
    ms: performance.now() - began,
    cost: cost === null ? null : Number(cost),
    request_id: response.headers.get('x-request-id'),
  }
}
