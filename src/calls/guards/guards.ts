/** All guards of the configuration, and which of them check the calls of a caller at a model. */
import type { Config } from '../../config/config.ts'
import type { GuardConfig } from '../../config/schema/guard-schema.ts'
import { matchesGlob } from '../../kit/glob.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Caller } from '../../spec/token.ts'
import { type AskGuard, createGuard, type Guard } from './guard.ts'

/** The guards of the calls of one caller at one model, in order. */
export type GuardPlan = {
  readonly guards: readonly Guard[]
  readonly ask: AskGuard
  /** Called with the name of a guard that has blocked a call. */
  readonly onBlocked?: ((guard: string) => void) | undefined
  /** Those of a call with these tags. */
  guardsWith(tags: readonly string[] | undefined): readonly Guard[]
}

export type Guards = {
  /** Undefined: no guard checks them. Throws GatewayError where the token or its project names one that is gone. */
  planOf(caller: Caller, model: GuardedModel): GuardPlan | undefined
  /** In the order in which they check. */
  all(): readonly Guard[]
}

/** `guards`: the names that it has. */
type GuardedModel = { id: string; guards: readonly string[] }

type GuardsParts = {
  /** The one in use, which a reload replaces. */
  config(): Pick<Config, 'guards'>
  ask: AskGuard
  onBlocked?: GuardPlan['onBlocked']
}

export function createGuards({ config, ask, onBlocked }: GuardsParts): Guards {
  let read: Config['guards'] | undefined
  let guards: readonly Guard[] = []

  /** A guard whose settings are the same is not compiled again. */
  function current(): readonly Guard[] {
    const { guards: settings } = config()
    if (settings === read) return guards
    const known = new Map(guards.map((guard) => [keyOf(guard.name, guard.config), guard]))
    guards = Object.entries(settings)
      .map(([name, one]) => known.get(keyOf(name, one)) ?? createGuard(name, one))
      .sort((one, other) => (one.config.order ?? 0) - (other.config.order ?? 0))
    read = settings
    return guards
  }

  return {
    all: current,
    planOf(caller, model) {
      if (caller.is_unguarded) return undefined
      const ofCaller = [...(caller.project?.guards ?? []), ...(caller.guards ?? [])]
      const named = ({ name }: Guard) => model.guards.includes(name) || ofCaller.includes(name)
      const fitting = current().filter((guard) => named(guard) || fits(guard.config, caller, model))
      const gone = ofCaller.find((name) => !fitting.some((guard) => guard.name === name))
      if (gone !== undefined) throw notThere(gone)
      if (fitting.length === 0) return undefined
      const always = (guard: Guard) => named(guard) || guard.config.when?.tags === undefined
      return {
        guards: fitting,
        ask,
        onBlocked,
        guardsWith: (tags) =>
          fitting.filter((guard) => always(guard) || guard.config.when?.tags?.every((tag) => tags?.includes(tag))),
      }
    },
  }
}

/** What it was to keep from a provider must not be sent because the configuration has lost it. */
const notThere = (name: string): GatewayError =>
  new GatewayError('content_blocked', `The guard "${name}" of this token or its project is not in the configuration.`, {
    accepted: 'no',
  })

const keyOf = (name: string, config: GuardConfig): string => JSON.stringify([name, config])

/** Whether the conditions of a guard hold, but for tags, which each call has of its own. */
function fits({ when }: GuardConfig, caller: Caller, { id }: GuardedModel): boolean {
  if (!when) return false
  const { projects, tokens, models } = when
  const has = (names: readonly string[] | undefined, ...own: (string | undefined)[]) =>
    names === undefined || own.some((one) => one !== undefined && names.includes(one))
  return (
    has(projects, caller.project_id, caller.project?.name) &&
    has(tokens, caller.token_id, caller.name) &&
    (models === undefined || models.some((pattern) => matchesGlob(pattern, id)))
  )
}
