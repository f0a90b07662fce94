/** The means to end work early: a signal, or an object that becomes one only where a signal is needed. */
export type Abortable = Pick<AbortSignal, 'aborted' | 'reason'> & {
  addEventListener(type: 'abort', follower: Follower): void
  removeEventListener(type: 'abort', follower: Follower): void
}

/** Called once, when the work is to end. */
export type Follower = { handleEvent(): void }
