/** Ends one try, by a time limit or because another was faster, while the call itself goes on. */
import type { Clock } from '../kit/clock.ts'
import type { Target } from '../providers/provider.ts'
import { GatewayError } from '../spec/error.ts'

/** The means to end one try; its signal ends with that of the call, too. */
export type TryControl = {
  readonly controller: AbortController
  /** Set while the first byte is awaited. */
  reject: ((reason: unknown) => void) | undefined
}

/** `signal`: of the call. It is followed for the life of the response, and is collected with the request. */
export function createTryControl(signal: AbortSignal): TryControl {
  const controller = new AbortController()
  if (signal.aborted) controller.abort(signal.reason)
  else signal.addEventListener('abort', () => controller.abort(signal.reason), { once: true })
  return { controller, reject: undefined }
}

export function cancelTry(control: TryControl, reason: GatewayError): void {
  control.reject?.(reason)
  control.controller.abort(reason)
}

/** The result of `execute`. Rejects when the try is cancelled, whether or not `execute` heeds the signal. */
export function underControl<Answer>(
  control: TryControl,
  execute: (signal: AbortSignal) => Promise<Answer>,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    control.reject = reject
    execute(control.controller.signal).then(resolve, reject)
  })
}

/** Ends the try, its stream included, after the total time of its target; returns what stops that. */
export function limitTotal(control: TryControl, { provider, timeouts }: Target, clock: Clock) {
  const seconds = timeouts?.total_seconds
  if (seconds === undefined) return undefined
  const message = `The response of the upstream "${provider.id}" took longer than ${seconds} s.`
  return clock.after(seconds * 1000, () => cancelTry(control, new GatewayError('upstream_timeout', message)))
}
