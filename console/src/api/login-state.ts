/** Whether a login is needed: calls that have lost their session wait here until somebody has logged in again. */
let needed: PromiseWithResolvers<void> | undefined
let count = 0
const listeners = new Set<() => void>()

const notify = () => {
  for (const listener of listeners) listener()
}

/** Resolves after the next login; rejects when the call is given up. */
export function waitForLogin(signal?: AbortSignal): Promise<void> {
  if (!needed) {
    needed = Promise.withResolvers<void>()
    notify()
  }
  const { promise } = needed
  if (!signal) return promise
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    promise.then(resolve, reject)
  })
}

export function loggedIn(): void {
  count++
  needed?.resolve()
  needed = undefined
  notify()
}

/** How often somebody has logged in over this page. */
export const logins = (): number => count

export const isLoginNeeded = (): boolean => needed !== undefined

export function onLoginChange(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

const LINK = /^#(ghl-\w+)$/
let link: string | undefined

/** Keeps the one-time secret of a login link that is opened, and takes it out of the address and the history. */
export function takeLoginLinks(): void {
  takeLink()
  // A link that is pasted into the address of the open page does not load it again.
  addEventListener('hashchange', takeLink)
}

function takeLink(): void {
  const opened = LINK.exec(location.hash)?.[1]
  if (opened === undefined) return
  link = opened
  history.replaceState(history.state, '', `${location.pathname}${location.search}`)
  notify()
}

/** The link that was opened and is not used yet. */
export const openedLink = (): string | undefined => link

export function forgetLink(): void {
  link = undefined
  notify()
}
