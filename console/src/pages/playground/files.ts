/** Reads the files that a person chooses, within the sizes that the playground allows. */
import { bytes } from '../../lib/format.ts'
import { type Attachment, MAX_FILE_BYTES, MAX_FILES, MAX_MESSAGE_BYTES } from './chat-types.ts'

/** The files that were there with those that are new. Throws Error for what is too large or too many. */
export async function withFiles(former: Attachment[], chosen: Iterable<File>): Promise<Attachment[]> {
  const files = [...chosen]
  if (former.length + files.length > MAX_FILES) throw new Error(`A message has at most ${MAX_FILES} files.`)
  for (const { name, size } of files)
    if (size > MAX_FILE_BYTES) throw new Error(`${name} has ${bytes(size)}; a file may have ${bytes(MAX_FILE_BYTES)}.`)
  const total = [...former, ...files].reduce((sum, { size }) => sum + size, 0)
  if (total > MAX_MESSAGE_BYTES)
    throw new Error(`The files of a message may have ${bytes(MAX_MESSAGE_BYTES)} together.`)
  return [...former, ...(await Promise.all(files.map(read)))]
}

const read = (file: File): Promise<Attachment> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () =>
      resolve({
        name: file.name || 'pasted',
        type: file.type || 'application/octet-stream',
        size: file.size,
        data_url: String(reader.result),
      })
    reader.onerror = () => reject(new Error(`${file.name} could not be read.`))
    reader.readAsDataURL(file)
  })
