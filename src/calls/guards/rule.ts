/** One rule of a guard: a pattern, and which of its matches count. */
import type { Pattern } from '../../kit/patterns/automaton.ts'

export type Rule = Pattern & {
  name: string
  /** The first part of its placeholders. */
  label: string
  /** Whether a text of this form counts, such as by its check digit. Absent: it does. */
  isValid?(text: string): boolean
}
