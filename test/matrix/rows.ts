/** The clients of the matrix, one line each. */
import { openai6 } from './clients/openai-6.ts'
import { openai7 } from './clients/openai-7.ts'
import type { Row } from './words.ts'

export const ROWS: Row[] = [openai7, openai6]
