/** The text report of an import: new, changed, kept, unknown and skipped settings. */
import { bold, dim, type Terminal } from '../terminal.ts'
import type { ModelsDev } from './models-import-data.ts'
import type { Plan, PlannedModel, Setting, Value } from './models-import-plan.ts'

/** One block per model, marked `+` new, `~` changed, `=` kept, `?` unknown to the source, `!` skipped. */
export function planText(plan: Plan, source: ModelsDev['name'], terminal: Terminal): string {
  const lines: string[] = []
  for (const model of plan.models) lines.push(...modelLines(model, source, terminal))
  for (const { id, provider, meant } of plan.unknown) {
    const hint = meant === undefined ? '' : `; the nearest name is "${meant}"`
    lines.push(`? ${bold(terminal, id)}  ${source} does not know this model of ${provider}${hint}`)
  }
  for (const { id, why } of plan.skipped) lines.push(dim(terminal, `! ${id}  skipped: ${why}`))
  for (const { provider, why } of plan.providers)
    lines.push(`! provider ${bold(terminal, provider)}  skipped: it ${why}`)
  return lines.map((line) => `${line}\n`).join('')
}

function modelLines({ id, change, settings }: PlannedModel, source: string, terminal: Terminal): string[] {
  if (change === 'none' && settings.length === 0) return []
  const mark = { new: '+', changed: '~', none: '=' }[change]
  const head = `${mark} ${bold(terminal, id)}`
  if (change !== 'new') return [head, ...settings.map((setting) => settingLine(setting, source))]
  return [`${head}  ${settings.map(({ path, to }) => `${path.join('.')} ${shown(to)}`).join(', ')}`]
}

function settingLine({ path, change, from, to, why }: Setting, source: string): string {
  const name = path.join('.').padEnd(28)
  if (change === 'new') return `    + ${name}  ${shown(to)}`
  if (change === 'changed') return `    ~ ${name}  ${shown(from)} -> ${shown(to)}`
  return `    = ${name}  ${shown(from)} is kept, ${why ?? 'because you wrote it'}; ${source} says ${shown(to)}`
}

const shown = (value: Value | undefined): string =>
  value === undefined ? 'none' : typeof value === 'object' ? JSON.stringify(value) : String(value)

export function countsOf({ models, unknown, skipped }: Plan) {
  const count = (change: PlannedModel['change']) => models.filter((model) => model.change === change).length
  const kept = models.flatMap(({ settings }) => settings).filter(({ change }) => change === 'kept').length
  return {
    new: count('new'),
    changed: count('changed'),
    unchanged: count('none'),
    kept,
    unknown: unknown.length,
    skipped: skipped.length,
  }
}

export function countsText(plan: Plan): string {
  const counts = countsOf(plan)
  const { new: added, changed, unchanged, kept, unknown, skipped } = counts
  const settings = `${kept} ${kept === 1 ? 'setting' : 'settings'} of yours kept`
  return `Models: ${added} new, ${changed} changed, ${unchanged} unchanged, ${unknown} unknown, ${skipped} skipped; ${settings}.\n`
}
