/** Where files are stored, by the configuration: short, so that the composition root need not know the kinds of storage. */
import { join } from 'node:path'
import type { Config } from '../config/config.ts'
import { createBucket } from './bucket.ts'
import { createDirectory } from './directory.ts'
import type { FileStore } from './outputs.ts'

export const outputDirectory = ({ outputs, data_dir }: Config): string => outputs.directory ?? join(data_dir, 'outputs')

export const openFileStore = (config: Config): FileStore =>
  config.outputs.s3 ? createBucket({ s3: config.outputs.s3 }) : createDirectory({ directory: outputDirectory(config) })
