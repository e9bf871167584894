complete --keep-order --exclusive --command tapelog --arguments "(COMPLETE=fish tapelog -- (commandline --current-process --tokenize --cut-at-cursor) (commandline --current-token))"
