/** Names the files of the gateway that programs of MCP servers may never read, and the place of their own directories. */
import { resolve } from 'node:path'
import { hiddenPaths } from '../config/check/sandbox-paths.ts'
import type { Config } from '../config/config.ts'
import type { Environment } from '../config/load/environment.ts'
import type { ProgramPlaces } from '../providers/mcp/program-sandbox.ts'

export const programPlaces = (config: Config, environment: Environment): ProgramPlaces => ({
  directory: resolve(config.data_dir, 'mcp'),
  hidden: hiddenPaths(config, environment),
})
