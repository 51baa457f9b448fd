from e2b_code_interpreter import CodeInterpreter

sandbox = CodeInterpreter()
execution = sandbox.notebook.exec_cell("print('Hello from sandbox!')")
print(execution.logs.stdout)
sandbox.close()
