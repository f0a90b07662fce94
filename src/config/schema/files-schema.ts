/** Uploaded files, as the operator writes it. */
import type Type from 'typebox'
import { integer, number, section } from '../../spec/fields.ts'

const days = (description: string) => number({ minimum: 0, maximum: 3_650 }, description)

export const FilesConfig = section({
  max_bytes: integer({ minimum: 1 }, 'Largest file of /v1/files. Default 536870912 (512 MiB).'),
  batch_max_bytes: integer({ minimum: 1 }, 'Largest file with the purpose batch. Default 209715200 (200 MiB).'),
  keep_days: days('Of files whose request does not say; 0: for ever. Default 0.'),
  batch_keep_days: days('The same for the input and output of batches. Default 30.'),
  project_files: integer({ minimum: 1 }, 'Files of all tokens of a project. Default 100,000.'),
  project_bytes: integer({ minimum: 1 }, 'Bytes of these files. Default 107374182400 (100 GiB).'),
})
export type FilesConfig = Type.Static<typeof FilesConfig>
