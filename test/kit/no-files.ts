/** Requests that name no files, for tests of parts without a store. */
import type { FileInputs } from '../../src/families/files/file-inputs.ts'

export const NO_FILES: FileInputs = { resolved: (request) => request }
