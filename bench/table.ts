/** Renders the one table: figures, ratios, and by how much each goal is met or missed. */
import { show } from './figures.ts'
import type { Goal, Row } from './plan.ts'
import { SUBJECTS, type SubjectName } from './subjects.ts'

const HEADINGS: Record<SubjectName, string> = {
  direct: 'direct to the vendor',
  nginx: 'nginx',
  bun: 'bare Bun proxy',
  gatehouse: 'Gatehouse',
  portkey: 'Portkey',
}

/** A Markdown table whose columns line up on a terminal too. */
export function renderTable(rows: Row[]): string {
  const head = ['', ...SUBJECTS.map((name) => HEADINGS[name]), 'of nginx', 'of Portkey', 'goal']
  const lines = [head, ...rows.map(cells)]
  const widths = head.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)))
  const render = (line: string[]) =>
    `| ${line.map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0))).join(' | ')} |`
  const rule = `|${widths.map((width, at) => (at === 0 ? `${'-'.repeat(width + 2)}` : `${'-'.repeat(width + 1)}:`)).join('|')}|`
  const [first = [], ...others] = lines
  return [render(first), rule, ...others.map(render)].join('\n')
}

function cells(row: Row): string[] {
  const figures = SUBJECTS.map((name) => {
    const value = row.figures[name]
    const shown = value === undefined || Number.isNaN(value) ? '' : show(value)
    const remark = row.remarks?.[name]
    return [shown, remark && (shown ? `(${remark})` : remark)].filter(Boolean).join(' ') || '-'
  })
  const ratios = [ratio(row, 'nginx'), ratio(row, 'portkey')].map((value) =>
    value === undefined ? '-' : `${show(value)} ×`,
  )
  return [row.name, ...figures, ...ratios, (row.goals ?? []).map((goal) => judge(row, goal)).join('; ')]
}

function ratio({ figures }: Row, of: 'nginx' | 'portkey'): number | undefined {
  const [ours, theirs] = [figures.gatehouse ?? Number.NaN, figures[of] ?? Number.NaN]
  // A difference that noise made negative has no ratio.
  return ours > 0 && theirs > 0 ? ours / theirs : undefined
}

/** "at least 0.25 of nginx: met by 24 %"; the difference is measured by the goal itself. */
export function judge(row: Row, goal: Goal): string {
  const value = goal.of ? ratio(row, goal.of) : row.figures.gatehouse
  const limit = 'atLeast' in goal ? goal.atLeast : goal.below
  const of = goal.of ? ` × ${HEADINGS[goal.of]}` : ''
  const asked = `${'atLeast' in goal ? 'at least' : 'below'} ${show(limit)}${of}`
  if (value === undefined || Number.isNaN(value)) return `${asked}: not measured`
  const met = 'atLeast' in goal ? value >= limit : value < limit
  return `${asked}: ${met ? 'met' : 'MISSED'} by ${show((100 * Math.abs(value - limit)) / limit)} %`
}
