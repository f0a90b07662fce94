/** Describes in one line how two configurations differ: names only, never a value. */
import { isRecord } from '../../kit/json.ts'
import type { Config } from '../config.ts'
import { placesMarked } from '../schema/schema-at.ts'

/** More names would not help a reader of the log. */
const MOST_NAMES = 12

type Changes = {
  /** `models +acme/a -acme/b ~acme/c, server ~port`; empty when nothing differs. */
  text: string
  /** Changed settings that take effect only at the next start. */
  needs_restart: string[]
}

export function changesBetween(before: Config, after: Config): Changes {
  const parts: string[] = []
  const needs_restart: string[] = []
  for (const section of Object.keys(after) as (keyof Config)[]) {
    const [old, now] = [before[section], after[section]]
    if (isSame(old, now)) continue
    const names = isRecord(old) && isRecord(now) ? changedNames(old, now) : undefined
    parts.push(names === undefined ? `~${section}` : `${section} ${listed(names)}`)
    const changed = names === undefined ? [section] : names.map((name) => `${section}.${name.slice(1)}`)
    needs_restart.push(...changed.filter(needsRestart))
  }
  return { text: parts.join(', '), needs_restart }
}

/** Whether a running server cannot change this setting, or one within it. */
const needsRestart = (name: string): boolean =>
  placesMarked('restart').some((place) => place === name || place.startsWith(`${name}.`))

const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other)

function changedNames(old: Record<string, unknown>, now: Record<string, unknown>): string[] {
  const added = Object.keys(now).filter((name) => !Object.hasOwn(old, name))
  const gone = Object.keys(old).filter((name) => !Object.hasOwn(now, name))
  const changed = Object.keys(now).filter((name) => Object.hasOwn(old, name) && !isSame(old[name], now[name]))
  return [...added.map((name) => `+${name}`), ...gone.map((name) => `-${name}`), ...changed.map((name) => `~${name}`)]
}

function listed(names: string[]): string {
  const shown = names.slice(0, MOST_NAMES).join(' ')
  return names.length > MOST_NAMES ? `${shown} and ${names.length - MOST_NAMES} more` : shown
}
