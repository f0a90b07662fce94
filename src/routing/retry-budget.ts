/**
 * Bounds how much retries multiply the load of a provider that fails. A call that a provider receives for the second time
 * is a retry for it; one that fails over to it from another provider is not.
 */

/** Envoy's defaults: a fifth of the open calls, and always three. */
const MOST_SHARE = 0.2
const ALWAYS_ALLOWED = 3

/** The open calls of a provider, and how many of them are retries. */
export type ProviderLoad = { open: number; retries: number }

export type RetryBudgets = {
  /** A call to the provider begins. Pass the result to `leaveProvider` when it has ended. */
  enter(provider: string, isRetry: boolean): ProviderLoad
  allows(provider: string): boolean
}

export function createRetryBudgets(): RetryBudgets {
  const loads = new Map<string, ProviderLoad>()

  function loadOf(provider: string): ProviderLoad {
    let load = loads.get(provider)
    if (!load) {
      load = { open: 0, retries: 0 }
      loads.set(provider, load)
    }
    return load
  }

  return {
    enter(provider, isRetry) {
      const load = loadOf(provider)
      load.open++
      if (isRetry) load.retries++
      return load
    },
    allows(provider) {
      const { open, retries } = loadOf(provider)
      return retries < Math.max(ALWAYS_ALLOWED, open * MOST_SHARE)
    },
  }
}

export function leaveProvider(load: ProviderLoad, isRetry: boolean): void {
  load.open--
  if (isRetry) load.retries--
}
