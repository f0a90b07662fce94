/** The items of a request and of the conversation before it as providers get them: with the data of the files that they name. */
import type { Conversation } from '../../protocols/responses/client/items.ts'
import type { InputItem } from '../../protocols/responses/client/schema.ts'
import type { FileInputs } from '../files/file-inputs.ts'
import { responsesFiles } from '../files/file-references.ts'

export type Items = { before: Conversation; input: InputItem[] }

/** What is stored keeps the ids. Throws `file_not_found` for a file that was deleted meanwhile. */
export async function sentItems({ before, input }: Items, files: FileInputs, client: Client): Promise<Items> {
  const sent = await files.resolved({ input }, responsesFiles, client)
  const earlier = await files.resolved({ input: before.items }, responsesFiles, client)
  return { before: earlier.input === before.items ? before : { ...before, items: earlier.input }, input: sent.input }
}

type Client = Parameters<FileInputs['resolved']>[2]
