/** Loads the configuration for a command. */
import type { Config } from '../config/config.ts'
import { loadConfig } from '../config/load/load.ts'
import { knownVendors } from '../gateway/known-vendors.ts'
import { type Arguments, configFlags } from './arguments.ts'
import type { Terminal } from './terminal.ts'

/** The configuration that the options and the environment name. */
export const configOf = (given: Arguments, { environment, cwd }: Terminal): Config =>
  loadConfig({ environment, cwd, flags: configFlags(given), vendors: knownVendors(environment) })
