/** What the fields of an order are, in a form. */
import type { FormWords } from '../http/form-fields.ts'

export const ORDER_WORDS: FormWords = {
  numbers: ['duration', 'n', 'seed', 'target_polycount'],
  booleans: ['audio_enable', 'texture', 'pbr'],
  objects: ['metadata'],
  lists: ['images'],
  files: ['image', 'last_image', 'images', 'video', 'input_reference'],
}
