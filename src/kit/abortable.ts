/** What ends a piece of work early: a signal, or an object that is one where none is needed as such. */
export type Abortable = Pick<AbortSignal, 'aborted' | 'reason'> & {
  addEventListener(type: 'abort', follower: Follower): void
  removeEventListener(type: 'abort', follower: Follower): void
}

type Ending = { readonly signal: AbortSignal; readonly ending?: Abortable | undefined }

/** Without a signal, where one is made only when it is asked for. */
export const endingOf = (work: Ending): Abortable => work.ending ?? work.signal

/** Called once, when the work is to end. */
export type Follower = { handleEvent(): void }
