/** What ends a piece of work early: a signal, or an object that is one where none is needed as such. */
export type Abortable = Pick<AbortSignal, 'aborted' | 'reason'> & {
  addEventListener(type: 'abort', follower: Follower): void
  removeEventListener(type: 'abort', follower: Follower): void
}

/** Called once, when the work is to end. */
export type Follower = { handleEvent(): void }
